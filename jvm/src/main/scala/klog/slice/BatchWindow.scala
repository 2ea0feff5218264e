package klog.slice

import java.nio.ByteBuffer

import klog.logformat.{BatchHeader, CorruptRecordError}
import klog.store.SegmentFile

/** The part of a file that is in memory, and the batch that is next there.
  *
  * The rule: a file is read a window at a time, from a position to another one. A batch that does not
  * fit is read whole, and the window grows for it within the limit of a batch. Bytes before the next
  * batch may be overwritten by the next read, so rows that point at them are shown first.
  *
  * @param windowBytes
  *   how much is read at a time
  */
final class BatchWindow(
    file: SegmentFile,
    from: Long,
    until: Long,
    windowBytes: Int,
    counts: ReadCounts
) {
  private var array = new Array[Byte](
    math.max(math.min(windowBytes.toLong, until - from), BatchHeader.HeaderBytes.toLong).toInt
  )
  private var view = ByteBuffer.wrap(array)

  /** Where the window starts in the file. */
  private var windowPosition = from
  private var next = 0
  private var filled = 0
  private var neededBytes = BatchHeader.MinFrameBytes

  def buffer: ByteBuffer = view

  def data: Array[Byte] = array

  /** The position in the file of the next batch. */
  def position: Long = windowPosition + next

  def isAtEnd: Boolean = position >= until

  /** Returns whether all bytes of the next batch are here. */
  def hasBatch: Boolean = {
    if (filled - next < BatchHeader.MinFrameBytes) neededBytes = BatchHeader.MinFrameBytes
    else neededBytes = BatchHeader.batchBytes(view, next, position)
    filled - next >= neededBytes
  }

  /** Reads on, so that the next batch is here.
    *
    * @throws CorruptRecordError
    *   if the bytes end before the batch does
    */
  def load(): Unit = {
    while (!hasBatch) {
      if (position + neededBytes > until) {
        throw new CorruptRecordError("the file ends in the middle of a batch", position)
      }
      makeRoom()
      val size = math.min((array.length - filled).toLong, until - windowPosition - filled).toInt
      val read = counts.read(file, windowPosition + filled, array, filled, size)
      if (read <= 0) throw new CorruptRecordError("the file ends in the middle of a batch", position)
      filled += read
    }
  }

  /** Reads the header of the next batch, which is here. */
  def read(header: BatchHeader): Unit = header.read(view, next, position)

  /** Steps over the next batch, which is here. */
  def skip(header: BatchHeader): Unit = next = header.end

  private def makeRoom(): Unit = {
    val kept = filled - next
    val isLarger = neededBytes > array.length
    val target = if (isLarger) new Array[Byte](neededBytes) else array
    System.arraycopy(array, next, target, 0, kept)
    if (isLarger) {
      array = target
      view = ByteBuffer.wrap(array)
    }
    windowPosition += next
    next = 0
    filled = kept
  }
}
