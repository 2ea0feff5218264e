package klog.logformat

import java.nio.ByteBuffer

/** What a control batch says: the end of a transaction, or something of a controller's.
  *
  * The rule (docs/format.md, 6): the key is int16 version and int16 type. A higher version is read as
  * 0, a negative one is damage. A control batch that a compaction emptied says nothing.
  */
object ControlRecord {
  val Abort: Int = 0
  val Commit: Int = 1
  private val Nothing = -1

  /** Returns the type of a control batch; another number than [[Abort]] and [[Commit]] decides nothing. */
  def kind(header: BatchHeader, buffer: ByteBuffer, position: Long): Int =
    if (header.count == 0) Nothing
    else
      try keyType(header, buffer.array, position)
      catch {
        case _: ArrayIndexOutOfBoundsException => throw malformed(position)
        case exc: CorruptRecordError => throw new CorruptRecordError(exc.reason, position)
      }

  private def keyType(header: BatchHeader, data: Array[Byte], position: Long): Int = {
    val length = Varint.read(data, header.start + BatchHeader.HeaderBytes)
    val bodyStart = Varint.end(length)
    val recordEnd = math.min(bodyStart.toLong + Varint.value(length), header.end.toLong)
    val offsetDelta = Varint.read(data, Varint.varlongEnd(data, bodyStart + 1))
    val key = Varint.read(data, Varint.end(offsetDelta))
    val keyStart = Varint.end(key)
    val keyLength = Varint.value(key)
    if (keyLength < 4 || keyLength > recordEnd - keyStart) throw malformed(position)
    val version = short(data, keyStart)
    if (version < 0) throw malformed(position)
    short(data, keyStart + 2)
  }

  private def short(data: Array[Byte], at: Int): Int = (data(at) << 8) | (data(at + 1) & 0xff)

  private def malformed(position: Long) =
    new CorruptRecordError("a malformed control record", position)
}
