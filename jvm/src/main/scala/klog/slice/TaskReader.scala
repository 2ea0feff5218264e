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
  def next(): Boolean = classified {
    var hasRows = reader.exists(_.next())
    while (!hasRows && openNext()) hasRows = reader.exists(_.next())
    hasRows
  }

  /** Opens the next slice; false if there is none. */
  private def openNext(): Boolean = {
    closeReader()
    slices.hasNext && {
      slice = slices.next()
      reader = Some(new SliceReader(stores.of(slice.root), slice, inflated, rows, counts, startTimestampMs))
      true
    }
  }

  override def close(): Unit =
    try classified(closeReader())
    finally inflated.close()

  private def classified[T](part: => T): T =
    try part
    catch {
      case exc: ClosedByInterruptException => throw exc // Spark has killed the task.
      case exc: FileNotFoundException =>
        throw new SliceChangedError(slice, "the file is missing or was replaced", exc)
      case exc @ (_: IOException | _: InvalidPathException) => throw new SliceUnreadableError(slice, exc)
    }

  private def closeReader(): Unit = {
    reader.foreach(_.close())
    reader = None
  }
}
