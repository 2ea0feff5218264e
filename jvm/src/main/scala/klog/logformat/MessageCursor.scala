package klog.logformat

import java.nio.ByteBuffer

/** Steps through messages of formats v0 and v1: an entry that is one message, or what a wrapper holds.
  *
  * The rule (docs/format.md, 4): a wrapper of v0 has absolute offsets inside. In one of v1 they count
  * from the first message, and the last one's absolute offset is the wrapper's, so the messages are
  * walked once before the first is given out; that walk checks them all. A wrapper of offset 0 (old
  * librdkafka) has absolute offsets inside. The timestamp type is the wrapper's. Any negative length is
  * null, and bytes after a value are ignored. A message that is cut short in a wrapper is damage.
  */
final class MessageCursor extends RowSource {
  import MessageCursor._

  private var buffer: ByteBuffer = ByteBuffer.allocate(0)
  private var at = 0
  private var end = 0
  private var remaining = 0
  private var shift = 0L
  private var entryPosition = 0L
  private var isInner = false
  private var outerType = NoTimestampType
  private var outerTimestampMs = -1L

  /** The offset of the first message, once open. */
  var firstOffset: Long = 0

  /** Starts at an entry that is one message. */
  def openMessage(header: BatchHeader, buffer: ByteBuffer, position: Long): Unit = {
    this.buffer = buffer
    at = header.start
    end = header.end
    remaining = 1
    shift = 0
    entryPosition = position
    isInner = false
    firstOffset = header.baseOffset
  }

  /** Starts at the first message that a wrapper holds.
    *
    * @param buffer
    *   has the messages, uncompressed, from `start` to `end`
    * @param minOffset
    *   the offset after the batch before: no message lies below it
    */
  def openWrapper(
      header: BatchHeader,
      buffer: ByteBuffer,
      start: Int,
      end: Int,
      position: Long,
      minOffset: Long
  ): Unit = {
    this.buffer = buffer
    this.end = end
    entryPosition = position
    if (start == end) throw damage("a wrapper without messages")
    val lastInner = checkMessages(start, header)
    shift = if (header.baseOffset != 0 && header.magic == 1) header.baseOffset - lastInner else 0
    at = start
    isInner = true
    outerType = if (header.magic == 0) NoTimestampType else if (header.hasLogAppendTime) 1 else 0
    outerTimestampMs = header.maxTimestampMs
    firstOffset = buffer.getLong(start) + shift
    if (firstOffset < minOffset) throw damage(s"offset $firstOffset does not rise")
  }

  override def hasMore: Boolean = remaining > 0

  override def fill(rows: RecordRows, startOffset: Long, endOffset: Long): Unit = {
    rows.data = buffer.array
    while (remaining > 0 && !rows.isFull) addMessage(rows, startOffset, endOffset)
  }

  /** Walks the messages of a wrapper and returns the inner offset of the last one. */
  private def checkMessages(start: Int, header: BatchHeader): Long = {
    val maxOffset = if (header.baseOffset != 0) header.baseOffset else BatchLimits.MaxOffset
    var position = start
    var last = -1L
    remaining = 0
    while (position < end) {
      val next = messageEnd(position)
      if (BatchHeader.messageCrc(buffer, position, next) != buffer.getInt(position + 12)) {
        throw damage("the CRC of a message in a wrapper is wrong")
      }
      val offset = buffer.getLong(position)
      if (offset < 0 || offset > maxOffset) {
        throw damage(s"inner offset $offset in a wrapper of offset ${header.baseOffset}")
      }
      if (offset <= last) throw damage(s"offset $offset does not rise")
      last = offset
      remaining += 1
      if (remaining > BatchLimits.MaxWrapperMessages) {
        throw damage(s"a wrapper of more than ${BatchLimits.MaxWrapperMessages} messages is refused")
      }
      position = next
    }
    last
  }

  private def messageEnd(start: Int): Int = {
    if (end - start < FrameBytes + MinLengths(0)) throw damage(TooShort)
    val length = buffer.getInt(start + 8)
    if (length < MinLengths(0)) throw damage(TooShort)
    if (length > end - start - FrameBytes) throw damage("a message in a wrapper is cut short")
    val magic = buffer.get(start + 16)
    if (magic < 0 || magic > 1) throw damage("a message of another format inside a wrapper")
    if (length < MinLengths(magic)) throw damage(TooShort)
    if ((buffer.get(start + 17) & 0x07) != 0) throw damage("a compressed message inside another")
    start + FrameBytes + length
  }

  private def addMessage(rows: RecordRows, startOffset: Long, endOffset: Long): Unit = {
    val wanted = rows.wanted
    val messageEnd = at + FrameBytes + buffer.getInt(at + 8)
    val magic = buffer.get(at + 16)
    val keyAt = at + (if (magic == 1) 26 else 18)
    val keyLength = fieldLength(keyAt, messageEnd, "key")
    val valueAt = keyAt + 4 + math.max(keyLength, 0)
    val valueLength = fieldLength(valueAt, messageEnd, "value")
    val offset = buffer.getLong(at) + shift
    if (offset >= startOffset && offset < endOffset) {
      val row = rows.count
      val ownType = if ((buffer.get(at + 17) & 0x08) != 0) 1 else 0
      val timestampType = if (magic == 0) NoTimestampType else if (isInner) outerType else ownType
      if (wanted.offset) rows.offsets(row) = offset
      if (wanted.timestamp) rows.timestampsUs(row) = RecordRows.micros(timestampMs(magic, timestampType))
      if (wanted.timestampType) rows.timestampTypes(row) = timestampType
      if (wanted.key) rows.keys.set(row, keyAt + 4, keyLength)
      if (wanted.value) rows.values.set(row, valueAt + 4, valueLength)
      if (wanted.headers) {
        rows.firstHeaders(row) = rows.headers.count
        rows.headerCounts(row) = 0
      }
      rows.count = row + 1
    }
    at = messageEnd
    remaining -= 1
  }

  private def timestampMs(magic: Int, timestampType: Int): Long =
    if (magic == 0) -1
    else if (isInner && timestampType == 1) outerTimestampMs
    else buffer.getLong(at + 18)

  private def fieldLength(at: Int, messageEnd: Int, name: String): Int = {
    if (messageEnd - at < 4) throw damage(s"the length of a $name reaches past its message")
    val length = buffer.getInt(at)
    if (length > messageEnd - at - 4) throw damage(s"a $name reaches past its message")
    math.max(length, -1)
  }

  private def damage(reason: String) = new CorruptRecordError(reason, entryPosition)
}

object MessageCursor {
  private val FrameBytes = 12
  private val NoTimestampType = -1
  private val MinLengths = Array(14, 22)
  private val TooShort = "a message shorter than its fields in a wrapper"

  /** Returns where the value of a wrapper, which holds its messages, starts and ends, packed into one
    * number: the start in the high 32 bits.
    */
  def wrapperValue(header: BatchHeader, buffer: ByteBuffer, position: Long): Long = {
    if (header.codec == 4) {
      throw new CorruptRecordError("message formats v0 and v1 do not have the codec zstd", position)
    }
    val keyAt = header.start + (if (header.magic == 1) 26 else 18)
    val keyLength = if (header.end - keyAt < 8) -2 else math.max(buffer.getInt(keyAt), 0)
    if (keyLength < 0 || keyLength > header.end - keyAt - 8) {
      throw new CorruptRecordError("a key reaches past its message", position)
    }
    val start = keyAt + 8 + keyLength
    val length = buffer.getInt(start - 4)
    if (length < 0) throw new CorruptRecordError("a compressed message without a value", position)
    if (length > header.end - start) {
      throw new CorruptRecordError("a value reaches past its message", position)
    }
    (start.toLong << 32) | (start + length)
  }
}
