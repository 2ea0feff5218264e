package klog.slice

import java.io.{FileNotFoundException, IOException}
import java.nio.channels.ClosedByInterruptException
import java.nio.file.InvalidPathException

import klog.codecs.InflatedBatches
import klog.logformat.{RecordRows, WantedColumns}
import klog.store.SegmentStores

/** Reads the slices of a task in order.
  *
  * The rule (docs/slice.md, Narrowing): if the bytes of a committed segment are not what its index has said,
  * what is left of the slice is read from the whole segment. That shows whether it is damaged.
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
    var hasRows = nextOfSlice()
    while (!hasRows && openNext()) hasRows = nextOfSlice()
    hasRows
  }

  /** Opens the next slice; false if there is none. */
  private def openNext(): Boolean = {
    closeReader()
    slices.hasNext && {
      open(slices.next())
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
      case exc: FileNotFoundException if slice.isCommitted => throw new MissingFileError(slice, exc)
      case exc: FileNotFoundException =>
        throw new SliceChangedError(slice, "the file is missing or was replaced", exc)
      case exc @ (_: IOException | _: InvalidPathException) => throw new SliceUnreadableError(slice, exc)
    }

  private def nextOfSlice(): Boolean =
    try reader.exists(_.next())
    catch {
      case _: SliceChangedError if reader.exists(_.isCut) =>
        val rest = reader.get.rest
        closeReader()
        open(rest)
        reader.exists(_.next())
    }

  private def open(next: Slice): Unit = {
    slice = next
    reader = Some(new SliceReader(stores.of(slice.root), slice, inflated, rows, counts, startTimestampMs))
  }

  private def closeReader(): Unit = {
    reader.foreach(_.close())
    reader = None
  }
}
