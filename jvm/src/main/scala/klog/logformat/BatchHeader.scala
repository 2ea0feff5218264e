package klog.logformat

import java.nio.ByteBuffer
import java.util.zip.{CRC32, CRC32C}

/** The header of one batch, or of an entry of message format v0 or v1, as it lies in a buffer.
  *
  * The rule (docs/format.md, 1, 2 and 4): an entry of an old format is a batch by itself. A plain one
  * counts one record. A wrapper of compressed messages has the count -1 and the offset of its ''last''
  * message, because only reading it shows how many it holds, and from which offset. A length is checked
  * before it is used; offsets lie outside the CRC, so only their order shows damage.
  */
final class BatchHeader {
  import BatchHeader._

  /** Where the batch starts and ends in its buffer. */
  var start: Int = 0
  var end: Int = 0
  var magic: Int = 0
  var attributes: Int = 0
  var baseOffset: Long = 0
  var nextOffset: Long = 0
  var baseTimestampMs: Long = 0
  var maxTimestampMs: Long = 0
  var producerId: Long = -1
  var lastOffsetDelta: Int = 0

  /** The number of records; [[WrapperCount]] if only reading shows it. */
  var count: Int = 0
  private var storedCrc: Int = 0

  def isLegacy: Boolean = magic < 2
  def isWrapper: Boolean = count == WrapperCount
  def codec: Int = attributes & 0x07
  def hasLogAppendTime: Boolean = (attributes & 0x08) != 0
  def isControl: Boolean = (attributes & 0x20) != 0
  def isTransactionalData: Boolean = (attributes & 0x30) == 0x10
  def hasDeleteHorizon: Boolean = (attributes & 0x40) != 0
  def sizeBytes: Int = end - start

  /** Returns whether the header says that all records are earlier than a time.
    *
    * Brokers, their cleaner and klog write the largest timestamp of the records into the header of a v2
    * batch, or -1 if they are all negative. A negative one, and those of formats v0 and v1, say nothing.
    */
  def isBefore(timestampMs: Long): Boolean =
    magic == 2 && maxTimestampMs >= 0 && maxTimestampMs < timestampMs

  /** Reads the header at a position of a buffer that has all bytes of the batch.
    *
    * @param position
    *   the position of the batch in its file, for errors
    */
  def read(buffer: ByteBuffer, start: Int, position: Long): Unit = {
    this.start = start
    end = start + batchBytes(buffer, start, position)
    magic = buffer.get(start + MagicAt)
    baseOffset = buffer.getLong(start)
    if (magic == 2) readRecordBatch(buffer) else readMessage(buffer)
    nextOffset = baseOffset + lastOffsetDelta + 1
    checkNumbers(position)
  }

  /** Throws if the batch does not have the CRC that it stores. */
  def checkCrc(buffer: ByteBuffer, position: Long): Unit = {
    val computed = if (isLegacy) messageCrc(buffer, start, end) else batchCrc(buffer, start, end)
    if (computed != storedCrc) {
      if (
        isLegacy && sizeBytes >= HeaderBytes && batchCrc(buffer, start, end) == buffer.getInt(start + CrcAt)
      ) {
        throw new CorruptRecordError(s"magic $magic on a batch of format v2", position)
      }
      val (name, owner) = if (isLegacy) ("CRC-32", "message") else ("CRC-32C", "batch")
      throw new CorruptRecordError(f"$name is 0x$computed%08x, the $owner says 0x$storedCrc%08x", position)
    }
  }

  private def readRecordBatch(buffer: ByteBuffer): Unit = {
    storedCrc = buffer.getInt(start + CrcAt)
    attributes = buffer.getShort(start + AttributesAt)
    lastOffsetDelta = buffer.getInt(start + LastOffsetDeltaAt)
    baseTimestampMs = buffer.getLong(start + BaseTimestampAt)
    maxTimestampMs = buffer.getLong(start + MaxTimestampAt)
    producerId = buffer.getLong(start + ProducerIdAt)
    count = buffer.getInt(start + CountAt)
  }

  private def readMessage(buffer: ByteBuffer): Unit = {
    storedCrc = buffer.getInt(start + 12)
    attributes = buffer.get(start + 17) & (if (magic == 1) 0x0f else 0x07)
    lastOffsetDelta = 0
    maxTimestampMs = if (magic == 1) buffer.getLong(start + 18) else -1
    baseTimestampMs = maxTimestampMs
    producerId = -1
    count = if (codec == 0) 1 else WrapperCount
  }

  private def checkNumbers(position: Long): Unit = {
    val isWrong = lastOffsetDelta < 0 || (count < 0 && !isLegacy) || count > lastOffsetDelta + 1L ||
      baseOffset < 0 || baseOffset > BatchLimits.MaxOffset - Int.MaxValue
    if (isWrong) {
      val reason = s"batch of $count records at offset $baseOffset and $lastOffsetDelta more"
      throw new CorruptRecordError(reason, position)
    }
  }
}

object BatchHeader {
  val HeaderBytes: Int = 61

  /** Up to the magic, which tells the formats apart. */
  val MinFrameBytes: Int = 17
  val WrapperCount: Int = -1

  /** Where the fields of a batch v2 lie, from its start on (docs/format.md, 2). */
  private[klog] val LengthAt = 8
  private[klog] val FrameBytes = 12
  private[klog] val LeaderEpochAt = 12
  private[klog] val MagicAt = 16
  private[klog] val CrcAt = 17
  private[klog] val AttributesAt = 21
  private[klog] val LastOffsetDeltaAt = 23
  private[klog] val BaseTimestampAt = 27
  private[klog] val MaxTimestampAt = 35
  private[klog] val ProducerIdAt = 43
  private[klog] val CountAt = 57
  private val MessageCrcStart = 16

  /** The length of a batch without content, by magic. */
  private val MinLengths = Array(14, 22, 49)

  /** Returns the size in bytes of the batch whose first [[MinFrameBytes]] bytes are at a position.
    *
    * @throws CorruptRecordError
    *   if no batch begins so
    */
  def batchBytes(buffer: ByteBuffer, start: Int, position: Long): Int = {
    val length = buffer.getInt(start + LengthAt)
    val magic = buffer.get(start + MagicAt)
    if (magic < 0 || magic > 2) {
      throw new CorruptRecordError(s"magic $magic is not a message format", position)
    }
    if (length < MinLengths(magic)) {
      throw new CorruptRecordError(s"batch length $length is below ${MinLengths(magic)}", position)
    }
    if (length > BatchLimits.MaxBatchBytes - FrameBytes) {
      val reason =
        s"a batch of ${length.toLong + FrameBytes} bytes is refused, the limit is ${BatchLimits.MaxBatchBytes}"
      throw new CorruptRecordError(reason, position)
    }
    FrameBytes + length
  }

  /** Returns the CRC-32 of a message of format v0 or v1. */
  def messageCrc(buffer: ByteBuffer, start: Int, end: Int): Int = {
    val crc = new CRC32
    crc.update(buffer.array, start + MessageCrcStart, end - start - MessageCrcStart)
    crc.getValue.toInt
  }

  /** Returns the CRC-32C of a batch v2. */
  def batchCrc(buffer: ByteBuffer, start: Int, end: Int): Int = {
    val crc = new CRC32C
    crc.update(buffer.array, start + AttributesAt, end - start - AttributesAt)
    crc.getValue.toInt
  }
}
