package klog.slice

import java.nio.ByteBuffer

import klog.logformat.{BatchHeader, CorruptRecordError, OffsetIndex}
import klog.store.{SegmentFile, SegmentStore}

/** Narrows the byte range of a slice by the index that it names: one read.
  *
  * The rule (docs/slice.md, Narrowing): an index may lie. That of a committed segment is believed, and
  * the data that is read proves it. That of a broker's is believed if the headers at both ends of the
  * byte range confirm it. Rows are the same without it.
  */
object IndexNarrowing {
  private val MaxIndexBytes = 256L << 20

  /** Returns a slice with a narrower byte range.
    *
    * @param slice
    *   its wanted offsets are as the file has them
    */
  def narrow(store: SegmentStore, slice: Slice, file: SegmentFile, counts: ReadCounts): Slice =
    if (slice.indexPath.isEmpty) slice
    else {
      val maxBytes = math.min(slice.indexSizeBytes, MaxIndexBytes)
      val knownBytes = if (slice.isCommitted) slice.indexSizeBytes else Slice.Unknown
      SliceFiles
        .readSmall(store, slice.indexPath, maxBytes, counts, knownBytes)
        .flatMap(OffsetIndex.parse(_, slice.baseOffset, slice.segmentSizeBytes))
        .filterNot(_.isEmpty)
        .map(index =>
          if (slice.isCommitted) narrowCommitted(slice, index) else narrowRaw(slice, index, file, counts)
        )
        .getOrElse(slice)
    }

  private def narrowCommitted(slice: Slice, index: OffsetIndex): Slice = {
    val start = index.positionBefore(slice.startOffset)
    val end = index.positionAfter(slice.endOffset - 1, slice.segmentSizeBytes)
    val isAll = start == 0 && end == slice.segmentSizeBytes
    slice.copy(
      startPosition = start,
      endPosition = end,
      firstOffset = if (start == 0) slice.firstOffset else Slice.Unknown,
      crc32c = if (isAll) slice.crc32c else Slice.Unknown
    )
  }

  private def narrowRaw(slice: Slice, index: OffsetIndex, file: SegmentFile, counts: ReadCounts): Slice = {
    def firstOffset(position: Long) = firstOffsetAt(file, position, counts)
    val start = index.positionBefore(slice.startOffset)
    val end = index.positionAfter(slice.endOffset - 1, slice.endPosition)
    val first = if (start == 0) Some(Slice.Unknown) else firstOffset(start)
    val isStartRight = first.exists(offset => start == 0 || offset <= slice.startOffset)
    val isEndRight = end == slice.endPosition || firstOffset(end).exists(_ >= slice.endOffset)
    if (start < end && isStartRight && isEndRight) {
      slice.copy(startPosition = start, endPosition = end, firstOffset = first.get)
    } else slice
  }

  /** Returns the base offset of the batch v2 at a position; None for anything else. */
  private def firstOffsetAt(file: SegmentFile, position: Long, counts: ReadCounts): Option[Long] = {
    val data = new Array[Byte](BatchHeader.HeaderBytes)
    if (counts.read(file, position, data, 0, data.length) < data.length) None
    else {
      val header = new BatchHeader
      try {
        header.read(ByteBuffer.wrap(data), 0, position)
        if (header.isLegacy || position + header.sizeBytes > file.sizeBytes) None else Some(header.baseOffset)
      } catch { case _: CorruptRecordError => None }
    }
  }
}
