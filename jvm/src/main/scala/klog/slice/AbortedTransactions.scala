package klog.slice

import java.util.{Arrays => JavaArrays}

import scala.collection.mutable

import klog.logformat.{BatchHeader, ControlRecord, CorruptRecordError}
import klog.store.SegmentFile

/** Which batches of a slice belong to aborted transactions.
  *
  * The rule (docs/slice.md, Transactions): what the slice calls aborted is aborted. In a klog root that is
  * all. For a broker's file, the first marker of the producer id after a batch decides the rest, up to
  * the end of the segment; without one there the transaction was committed. The planner hands out no
  * slice whose markers lie in another file.
  */
final class AbortedTransactions(slice: Slice, file: SegmentFile, counts: ReadCounts) {
  private val known = ProducerRanges.of(slice.abortedTransactions)
  private val asksMarkers = slice.committedOnly && slice.markersEndOffset != Slice.Unknown

  /** The markers after the first batch that asked for one, as far as they were looked for. */
  private var markers: Option[MarkerScan] = None

  /** Returns whether a batch is data of an aborted transaction.
    *
    * @param position
    *   the position after the batch in the file
    */
  def isAborted(header: BatchHeader, position: Long): Boolean =
    slice.committedOnly && header.isTransactionalData &&
      (known.get(header.producerId).exists(_.contain(header.baseOffset)) || isAbortedByMarker(
        header,
        position
      ))

  private def isAbortedByMarker(header: BatchHeader, position: Long): Boolean =
    asksMarkers && {
      if (markers.isEmpty) markers = Some(new MarkerScan(slice, file, position, counts))
      markers.get.kindAfter(header.producerId, header.baseOffset) == ControlRecord.Abort
    }
}

/** Reads the markers of a segment from a position on, as far as they are asked for.
  *
  * The rule: most transactions end soon, so the scan goes on only until a marker of the producer that is
  * asked for is there, or the segment ends.
  */
private final class MarkerScan(slice: Slice, file: SegmentFile, position: Long, counts: ReadCounts) {
  private val window = new BatchWindow(file, position, slice.segmentSizeBytes, MarkerScan.WindowBytes, counts)
  private val header = new BatchHeader
  private val lists = mutable.Map.empty[Long, MarkerList]

  /** Returns the kind of the first marker of a producer after an offset; a commit if there is none. */
  def kindAfter(producerId: Long, offset: Long): Int = {
    var kind = known(producerId, offset)
    while (kind.isEmpty && !window.isAtEnd) {
      readBatch()
      kind = known(producerId, offset)
    }
    kind.getOrElse(ControlRecord.Commit)
  }

  private def known(producerId: Long, offset: Long): Option[Int] =
    lists.get(producerId).flatMap(_.kindAfter(offset))

  private def readBatch(): Unit =
    try {
      window.load()
      window.read(header)
      if (header.isControl && header.nextOffset > slice.startOffset) readMarker()
      window.skip(header)
    } catch {
      case exc: CorruptRecordError =>
        val reason = s"${exc.reason}, and the marker that ends a transaction lies there or later"
        throw new CorruptRecordError(reason, exc.position, exc)
    }

  private def readMarker(): Unit = {
    header.checkCrc(window.buffer, window.position)
    val kind = ControlRecord.kind(header, window.buffer, window.position)
    if (header.producerId >= 0 && (kind == ControlRecord.Abort || kind == ControlRecord.Commit)) {
      lists.getOrElseUpdate(header.producerId, new MarkerList).add(header.baseOffset, kind)
    }
  }
}

private object MarkerScan {
  private val WindowBytes = 256 << 10
}

/** The markers of one producer id, by rising offset. */
private final class MarkerList {
  private val markers = mutable.Queue.empty[(Long, Int)]

  def add(offset: Long, kind: Int): Unit = markers.enqueue(offset -> kind)

  /** Returns the kind of the first marker after an offset, and forgets those before: offsets rise. */
  def kindAfter(offset: Long): Option[Int] = {
    while (markers.headOption.exists(_._1 <= offset)) markers.dequeue()
    markers.headOption.map(_._2)
  }
}

/** The aborted transactions of one producer id: ranges of offsets, which may overlap. */
private final class ProducerRanges(firstOffsets: Array[Long], maxMarkers: Array[Long]) {

  def contain(offset: Long): Boolean = {
    val index = JavaArrays.binarySearch(firstOffsets, offset)
    val number = if (index >= 0) lastEqual(index) else -index - 2
    number >= 0 && maxMarkers(number) >= offset
  }

  private def lastEqual(first: Int): Int = {
    var number = first
    while (number + 1 < firstOffsets.length && firstOffsets(number + 1) == firstOffsets(first)) number += 1
    number
  }
}

private object ProducerRanges {
  def of(transactions: Array[Long]): Map[Long, ProducerRanges] =
    transactions.grouped(3).toSeq.groupBy(_(0)).map { case (producerId, rows) =>
      val sorted = rows.sortBy(_(1))
      val markers = sorted.map(_(2)).scanLeft(Long.MinValue)(_ max _).drop(1)
      producerId -> new ProducerRanges(sorted.map(_(1)).toArray, markers.toArray)
    }
}
