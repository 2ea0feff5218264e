package klog.slice

import java.io.{FileNotFoundException, IOException}
import java.nio.channels.ClosedByInterruptException
import java.nio.file.InvalidPathException

import klog.codecs.InflatedBatches
import klog.logformat.{RecordRows, WantedColumns}
import klog.store.SegmentStores

/** Reads the slices of a task in order.
  *
  * @param stores
  *   the stores of their roots
  * @param startTimestampMs
  *   rows that are earlier may be left out
  */
final class TaskReader(
    slices: Iterator[Slice],
    wanted: WantedColumns,
    stores: SegmentStores,
    startTimestampMs: Long
) extends AutoCloseable {
  val rows: RecordRows = new RecordRows(wanted)
  val counts: ReadCounts = new ReadCounts
  private val inflated = new InflatedBatches
  private var reader: Option[SliceReader] = None

  /** The slice of the rows. */
  var slice: Slice = _

  /** Fills the rows with the next records, all of one slice; false if there are none. */
  def next(): Boolean = {
    try {
      while (!reader.exists(_.next())) {
        closeReader()
        if (!slices.hasNext) return false
        slice = slices.next()
        reader = Some(new SliceReader(stores.of(slice.root), slice, inflated, rows, counts, startTimestampMs))
      }
      true
    } catch {
      case exc: ClosedByInterruptException => throw exc // Spark has killed the task.
      case exc: FileNotFoundException =>
        throw new SliceChangedError(slice, "the file is missing or was replaced", exc)
      case exc @ (_: IOException | _: InvalidPathException) => throw new SliceUnreadableError(slice, exc)
    }
  }

  override def close(): Unit =
    try closeReader()
    finally inflated.close()

  private def closeReader(): Unit = {
    reader.foreach(_.close())
    reader = None
  }
}
