package klog.staging

import java.io.IOException
import java.util.Locale
import java.util.zip.CRC32C

import scala.collection.mutable.ArrayBuffer

import klog.store.WritableSegmentStore

/** A segment that is on the store, as a commit's `add` has it. */
final case class StagedSegment(
    partition: Int,
    file: String,
    baseOffset: Long,
    nextOffset: Long,
    sizeBytes: Long,
    indexBytes: Int,
    timeIndexBytes: Int,
    crc32c: Long,
    batchCount: Int,
    minTimestampMs: Long,
    maxTimestampMs: Long
)

/** Stages the segments of one partition: batches in, files on the store out.
  *
  * The rule: a batch gets its offsets when it comes, and goes to the open segment; a segment goes to the store
  * when it is closed: first its log, then its indexes, because vacuum finds the files of a killed task by
  * their log. A segment rolls where a broker's would, each batch being one append.
  */
final class SegmentStager(
    plan: TopicPlan,
    task: TaskAttempt,
    partition: Int,
    root: String,
    store: WritableSegmentStore,
    spool: BatchSpool,
    counts: WriteCounts
) {
  private val settings = plan.settings
  private val firstOffset = plan.logEnds(partition)
  private var nextOffset = firstOffset
  private var segment: OpenSegment = null
  private val batches = ArrayBuffer.empty[SpooledBatch]
  private val crc = new CRC32C
  private var minTimestampMs = Long.MaxValue
  private val staged = ArrayBuffer.empty[StagedSegment]

  /** The segments on the store, in order. */
  def segments: Seq[StagedSegment] = staged.toSeq

  def add(batch: EncodedBatch): Unit = {
    val (data, records, maxMs) = (batch.data, batch.recordCount, batch.maxTimestampMs)
    val lastOffset = nextOffset + records - 1
    if (segment != null && segment.shouldRoll(data.length, lastOffset, maxMs, task.nowMs)) close()
    if (segment == null) segment = new OpenSegment(nextOffset, task.nowMs, settings)
    BatchEncoder.assignOffsets(
      batch,
      nextOffset,
      nextOffset - firstOffset,
      plan.leaderEpochs(partition),
      task
    )
    segment.append(data.length, lastOffset, maxMs)
    batches += spool.add(data)
    crc.update(data)
    minTimestampMs = math.min(minTimestampMs, batch.minTimestampMs)
    nextOffset = lastOffset + 1
    counts.add(batch)
  }

  /** Puts the open segment on the store, if there is one. */
  def close(): Unit = if (segment != null) putSegment()

  private def put(file: String, chunks: Iterator[Array[Byte]]): Unit =
    try store.put(s"$root/$file", chunks)
    catch {
      case exc: IOException =>
        throw StagingError.failed(
          s"$root/$file: not written: ${StagingError.reason(exc)}. Check the path, and that there is room and access",
          exc
        )
    }

  private def putSegment(): Unit = {
    val started = System.nanoTime()
    val closed = segment
    segment = null
    val name = SegmentStager.fileName(closed.baseOffset, plan.baseVersion, task.id)
    val file = s"${plan.topic}-$partition/$name"
    put(s"$file.log", spool.take(batches.toSeq))
    val timeIndex = if (closed.isIndexed) closed.closedTimeIndex() else Array.emptyByteArray
    val offsetIndex = if (closed.isIndexed) closed.offsetIndex else Array.emptyByteArray
    if (closed.isIndexed) {
      put(s"$file.index", Iterator(offsetIndex))
      put(s"$file.timeindex", Iterator(timeIndex))
    }
    staged += StagedSegment(
      partition,
      s"$file.log",
      closed.baseOffset,
      closed.endOffset,
      closed.sizeBytes,
      offsetIndex.length,
      timeIndex.length,
      crc.getValue,
      batches.length,
      minTimestampMs,
      closed.largestTimestampMs
    )
    batches.clear()
    crc.reset()
    minTimestampMs = Long.MaxValue
    counts.files += 1
    counts.storeNanos += System.nanoTime() - started
  }
}

private[staging] object SegmentStager {

  /** Returns the name of a segment without its suffix, in the same digits in each locale. */
  def fileName(baseOffset: Long, baseVersion: Long, attempt: String): String =
    String.format(Locale.ROOT, "%020d-%010d-%s", Long.box(baseOffset), Long.box(baseVersion), attempt)
}
