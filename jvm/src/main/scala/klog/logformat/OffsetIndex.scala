package klog.logformat

import java.nio.ByteBuffer

/** The entries of an offset index, `.index`: where appends start (docs/format.md, 8.1).
  *
  * @param offsets
  *   the last offset of each append, rising
  * @param positions
  *   where it starts in the log, rising
  */
final class OffsetIndex private (offsets: Array[Long], positions: Array[Long]) {

  def isEmpty: Boolean = offsets.isEmpty

  /** Returns the position from which a scan finds each batch that reaches an offset: of the entry before
    * the first one whose offset is at or above it.
    */
  def positionBefore(offset: Long): Long = {
    val number = firstAtOrAbove(offset)
    if (number == 0) 0 else positions(number - 1)
  }

  /** Returns where the entry begins that follows the first one at or above an offset.
    *
    * @param end
    *   the end of the log, if there is no such entry
    */
  def positionAfter(offset: Long, end: Long): Long = {
    val number = firstAtOrAbove(offset) + 1
    if (number < positions.length) math.min(positions(number), end) else end
  }

  private def firstAtOrAbove(offset: Long): Int = {
    val index = java.util.Arrays.binarySearch(offsets, offset)
    if (index >= 0) index else -index - 1
  }
}

object OffsetIndex {
  private val EntryBytes = 8

  /** Decodes an index; None if it is malformed. Zeros after the last entry are not entries, and entries
    * past the end of the log are left out.
    */
  def parse(data: Array[Byte], baseOffset: Long, logBytes: Long): Option[OffsetIndex] =
    if (data.length % EntryBytes != 0) None
    else {
      val buffer = ByteBuffer.wrap(data)
      val all = data.length / EntryBytes
      var count = all
      while (count > 0 && buffer.getInt((count - 1) * EntryBytes + 4) == 0) count -= 1
      val offsets = Array.tabulate(count)(number => buffer.getInt(number * EntryBytes) + baseOffset)
      val positions = Array.tabulate(count)(number => buffer.getInt(number * EntryBytes + 4).toLong)
      if (isRising(offsets, baseOffset) && isRising(positions, 0)) {
        val inside = positions.count(_ < logBytes)
        Some(new OffsetIndex(offsets.take(inside), positions.take(inside)))
      } else None
    }

  private def isRising(values: Array[Long], min: Long): Boolean =
    (values.isEmpty || values(0) >= min) && (1 until values.length).forall(n => values(n) > values(n - 1))
}
