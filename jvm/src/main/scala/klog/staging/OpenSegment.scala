package klog.staging

import java.nio.ByteBuffer
import java.util.{Arrays => JavaArrays}

/** The indexes of a segment that is being made, and when it rolls (docs/format.md, 8.1, 8.2 and 9).
  *
  * The rule: an append gets an entry if more than `index.interval.bytes` lie between the start of the last
  * append with an entry (at first, of the segment) and its own start. The offset index has the last offset
  * of the append and its start; the time index the largest timestamp up to and including it, and the last
  * offset of the first append with it, unless the timestamp is not above that of the entry before. A last
  * time entry is added when the segment is closed.
  */
final class OpenSegment(val baseOffset: Long, createdMs: Long, settings: StagingSettings) {
  import OpenSegment._

  private val offsetEntries = new Entries(OffsetEntryBytes)
  private val timeEntries = new Entries(TimeEntryBytes)
  private var firstTimestampMs = NoTimestamp
  private var largestTimestampOffset = baseOffset
  private var indexedTimestampMs = NoTimestamp
  private var unindexedBytes = 0L

  var sizeBytes: Long = 0
  var endOffset: Long = baseOffset

  /** Of all appends, as brokers see them: -1 is none. */
  var largestTimestampMs: Long = NoTimestamp

  /** Returns whether the segment rolls before an append.
    *
    * @param timestampMs
    *   the largest timestamp of the append, -1 without one
    */
  def shouldRoll(bytes: Int, lastOffset: Long, timestampMs: Long, nowMs: Long): Boolean =
    sizeBytes + bytes > settings.segmentBytes ||
      (sizeBytes > 0 && waitedMs(timestampMs, nowMs) > settings.segmentMs) ||
      offsetEntries.count >= settings.segmentIndexBytes / OffsetEntryBytes ||
      timeEntries.count >= settings.segmentIndexBytes / TimeEntryBytes - 1 ||
      lastOffset - baseOffset > Int.MaxValue

  def append(bytes: Int, lastOffset: Long, timestampMs: Long): Unit = {
    if (sizeBytes == 0) firstTimestampMs = timestampMs
    if (timestampMs > largestTimestampMs) {
      largestTimestampMs = timestampMs
      largestTimestampOffset = lastOffset
    }
    if (unindexedBytes > settings.indexIntervalBytes) {
      offsetEntries.add().putInt((lastOffset - baseOffset).toInt).putInt(sizeBytes.toInt)
      addTimeEntry()
      unindexedBytes = 0
    }
    unindexedBytes += bytes
    sizeBytes += bytes
    endOffset = lastOffset + 1
  }

  /** Whether the segment is large enough to have index files. */
  def isIndexed: Boolean = sizeBytes >= settings.minIndexedBytes

  def offsetIndex: Array[Byte] = offsetEntries.bytes

  /** Returns the time index of the closed segment. */
  def closedTimeIndex(): Array[Byte] = {
    addTimeEntry()
    timeEntries.bytes
  }

  private def addTimeEntry(): Unit =
    if (largestTimestampMs > indexedTimestampMs) {
      timeEntries.add().putLong(largestTimestampMs).putInt((largestTimestampOffset - baseOffset).toInt)
      indexedTimestampMs = largestTimestampMs
    }

  private def waitedMs(timestampMs: Long, nowMs: Long): Long =
    if (firstTimestampMs >= 0) timestampMs - firstTimestampMs else nowMs - createdMs
}

object OpenSegment {
  private val OffsetEntryBytes = 8
  private val TimeEntryBytes = 12
  private val NoTimestamp = -1L

  /** Entries of one size, one after the other. */
  private final class Entries(entryBytes: Int) {
    private var array = new Array[Byte](16 * entryBytes)
    var count: Int = 0

    /** Adds an entry; returns a buffer that stands at it. */
    def add(): ByteBuffer = {
      if (array.length < (count + 1) * entryBytes) array = JavaArrays.copyOf(array, 2 * array.length)
      count += 1
      ByteBuffer.wrap(array, (count - 1) * entryBytes, entryBytes)
    }

    def bytes: Array[Byte] = JavaArrays.copyOf(array, count * entryBytes)
  }
}
