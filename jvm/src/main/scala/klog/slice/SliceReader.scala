package klog.slice

import java.util.zip.CRC32C

import klog.codecs.InflatedBatches
import klog.logformat._
import klog.store.{SegmentFile, SegmentStore}

/** Reads the records of one slice: CRC first, then decompression within limits, then columns.
  *
  * The rule (docs/slice.md, Reading): the CRC of each batch that has wanted offsets is checked, whatever
  * the columns. A batch is decompressed only if its header does not say the columns. Memory is one
  * window of the file and one array of decompressed batches, whatever the segment's size.
  *
  * @param inflated
  *   the task's array for decompressed batches
  * @param rows
  *   the task's rows: the reader fills them again and again
  * @param startTimestampMs
  *   batches whose records are all earlier are checked and passed over
  */
final class SliceReader(
    store: SegmentStore,
    planned: Slice,
    inflated: InflatedBatches,
    rows: RecordRows,
    counts: ReadCounts,
    startTimestampMs: Long
) extends AutoCloseable {
  private val file: SegmentFile = SliceFiles.open(store, planned, counts)
  private val slice = closeOnFailure(IndexNarrowing.narrow(store, planned.asInFile, file, counts))
  private val transactions = closeOnFailure(new AbortedTransactions(slice, file, counts))
  private val window = closeOnFailure(
    new BatchWindow(file, slice.startPosition, slice.endPosition, SliceReader.WindowBytes, counts)
  )
  private val header = new BatchHeader
  private val records = new RecordCursor
  private val messages = new MessageCursor
  private val headerRecords = new HeaderCursor
  private var current: RowSource = headerRecords
  private val segmentCrc = new CRC32C
  private var isFirst = true
  private var isDone = false

  /** Whether the batch at hand was checked, and waits for its records to be read. */
  private var isPending = false
  private var minOffset = slice.baseOffset
  private var failure: Option[Exception] = None

  /** Whether an index has cut the byte range: it may be wrong, and then the whole segment is to be read. */
  def isCut: Boolean = slice.isCommitted && !slice.isCompleteSegment

  /** Returns what was not given out yet as a slice that is the whole segment: it begins after the last batch. */
  def rest: Slice =
    planned.copy(
      startOffset = math.max(planned.startOffset, minOffset + planned.offsetShift),
      startPosition = 0,
      endPosition = planned.segmentSizeBytes,
      firstOffset = Slice.Unknown,
      crc32c = Slice.Unknown,
      indexPath = ""
    )

  /** Fills the rows with the next records. Those before damage are given out first.
    *
    * @return
    *   false if there are none
    * @throws SliceChangedError
    *   if the file holds other bytes than were planned
    * @throws CorruptFileError
    *   if the bytes are damaged
    */
  def next(): Boolean = {
    rows.clear()
    failure.foreach(throw _)
    try {
      var isOpen = true
      while (isOpen && !rows.isFull) {
        if (current.hasMore) timed(decoded(current.fill(rows, slice.startOffset, slice.endOffset)))
        else isOpen = openNextBatch()
      }
    } catch {
      case exc: CorruptRecordError => fail(inFile(exc))
      case exc: SliceError => fail(exc)
    }
    if (slice.offsetShift != 0 && rows.wanted.offset) shiftOffsets()
    !rows.isEmpty
  }

  override def close(): Unit = file.close()

  /** Decodes a batch whose CRC was right. So no index has led here wrongly, and damage is the file's. */
  private def decoded[T](part: => T): T =
    try part
    catch { case exc: CorruptRecordError => throw new CorruptFileError(slice, exc.position, exc.reason, exc) }

  private def fail(exc: Exception): Unit = {
    failure = Some(exc)
    if (rows.isEmpty) throw exc
  }

  /** Opens the next batch that has records to show.
    *
    * @return
    *   false at the end, or if the rows have to be read first
    */
  private def openNextBatch(): Boolean = {
    var isOpened = false
    while (!isOpened) {
      if (!isPending) {
        if (isDone || window.isAtEnd) return finish()
        if (!window.hasBatch && rows.pointInto(window.data)) return false
        window.load()
        checkBatch()
      }
      if (isVisible) {
        if (!decoded(openRecords())) return false
        isOpened = true
      } else counts.batchesSkipped += 1
      minOffset = header.nextOffset
      isPending = false
      isDone = header.nextOffset >= slice.endOffset
      window.skip(header)
    }
    true
  }

  /** Reads and checks the header of the next batch, and the CRC if it has wanted offsets. */
  private def checkBatch(): Unit = {
    window.read(header)
    counts.batchesRead += 1
    if (header.baseOffset < minOffset) {
      val reason = s"batch at offset ${header.baseOffset} after offset ${minOffset - 1}"
      throw new CorruptRecordError(reason, window.position)
    }
    if (isFirst) checkFirst()
    if (header.nextOffset > slice.limitOffset) {
      val reason =
        s"offset ${header.nextOffset - 1} lies after the segment's last offset, ${slice.limitOffset - 1}"
      throw new CorruptRecordError(reason, window.position)
    }
    if (slice.crc32c != Slice.Unknown) checkSegmentCrc()
    if (isOverlapping) {
      val started = System.nanoTime()
      header.checkCrc(window.buffer, window.position)
      counts.crcNanos += System.nanoTime() - started
    }
    isPending = true
  }

  private def checkFirst(): Unit = {
    isFirst = false
    if (slice.firstOffset != Slice.Unknown) {
      val offset = firstOffset()
      if (offset != slice.firstOffset) {
        throw changed(s"offset $offset where ${slice.firstOffset} was planned")
      }
    }
    if (slice.isCommitted && slice.startPosition > 0 && header.baseOffset >= slice.startOffset) {
      throw changed("its index leads past the first offset wanted")
    }
  }

  private def firstOffset(): Long =
    if (!header.isWrapper) header.baseOffset
    else {
      header.checkCrc(window.buffer, window.position)
      openWrapper(canReplace = true)
      current = headerRecords
      messages.firstOffset
    }

  private def checkSegmentCrc(): Unit = {
    segmentCrc.update(window.data, header.start, header.sizeBytes)
    val isLast = window.position + header.sizeBytes == slice.endPosition
    if (isLast && segmentCrc.getValue != slice.crc32c) {
      val reason = f"its CRC-32C is ${segmentCrc.getValue}%08x, its commit says ${slice.crc32c}%08x: it is " +
        "not the file that was committed"
      throw new CorruptRecordError(reason, 0)
    }
  }

  /** The first offset that the batch may have a record of. */
  private def firstPossibleOffset: Long = if (header.isWrapper) minOffset else header.baseOffset

  private def isOverlapping: Boolean =
    header.nextOffset > slice.startOffset && firstPossibleOffset < slice.endOffset

  private def isVisible: Boolean =
    isOverlapping && !header.isControl && header.count != 0 && !header.isBefore(startTimestampMs) &&
      !transactions.isAborted(header, window.position + header.sizeBytes)

  /** Starts to read the records of the batch; false if the rows have to be read first. */
  private def openRecords(): Boolean = {
    val isWhollyWanted = header.baseOffset >= slice.startOffset && header.nextOffset <= slice.endOffset
    if (HeaderCursor.isEnough(header, rows.wanted, isWhollyWanted)) {
      headerRecords.open(header, window.position)
      current = headerRecords
      counts.batchesNotInflated += 1
      true
    } else if (header.isWrapper) openWrapper(canReplaceInflated)
    else if (header.isLegacy) {
      rows.takes(window.data) && {
        messages.openMessage(header, window.buffer, window.position)
        current = messages
        true
      }
    } else if (header.codec == 0) {
      rows.takes(window.data) && {
        val start = header.start + BatchHeader.HeaderBytes
        records.open(header, window.data, start, header.end, window.position)
        current = records
        true
      }
    } else openCompressed()
  }

  private def openCompressed(): Boolean = {
    val start = header.start + BatchHeader.HeaderBytes
    if (!inflate(start, header.end, canReplaceInflated)) return false
    records.open(header, inflated.data, inflated.start, inflated.end, window.position)
    current = records
    true
  }

  private def openWrapper(canReplace: Boolean): Boolean = {
    val value = MessageCursor.wrapperValue(header, window.buffer, window.position)
    if (!inflate((value >>> 32).toInt, value.toInt, canReplace)) return false
    messages.openWrapper(header, inflated.buffer, inflated.start, inflated.end, window.position, minOffset)
    current = messages
    true
  }

  /** Whether no row points at the batches that are inflated. */
  private def canReplaceInflated: Boolean = rows.isEmpty || !rows.wanted.needsRecords

  private def inflate(start: Int, end: Int, canReplace: Boolean): Boolean =
    (canReplace || rows.takes(inflated.data)) && {
      val started = System.nanoTime()
      val isInflated =
        inflated.add(header.codec, header.magic, window.data, start, end, window.position, canReplace)
      counts.inflateNanos += System.nanoTime() - started
      isInflated
    }

  /** Returns false: there are no more batches. It is checked that none is missing. */
  private def finish(): Boolean = {
    if (!isDone && slice.isCommitted && slice.endPosition < slice.segmentSizeBytes) {
      throw changed("its index leads before the end of what is wanted")
    }
    false
  }

  private def shiftOffsets(): Unit = {
    var row = 0
    while (row < rows.count) {
      rows.offsets(row) += slice.offsetShift
      row += 1
    }
  }

  private def timed(work: => Unit): Unit = {
    val started = System.nanoTime()
    val before = rows.count
    work
    counts.decodeNanos += System.nanoTime() - started
    counts.records += rows.count - before
  }

  /** Returns damage with its file, or as a changed slice if an index cut the slice wrongly. */
  private def inFile(exc: CorruptRecordError): Exception =
    if (isCut) {
      new SliceChangedError(slice, s"cut by its index, ${exc.getMessage}", exc)
    } else new CorruptFileError(slice, exc.position, exc.reason, exc)

  private def changed(reason: String) = new SliceChangedError(slice, reason)

  private def closeOnFailure[T](work: => T): T =
    try work
    catch {
      case exc: Throwable =>
        file.close()
        throw exc
    }
}

object SliceReader {

  /** How much of a file is read at a time: both copies that Java makes stay in the processor's cache. */
  private val WindowBytes = 256 << 10
}
