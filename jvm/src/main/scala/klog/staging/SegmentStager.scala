package klog.staging

import java.util.Locale
import java.util.zip.CRC32C

import scala.collection.mutable.ArrayBuffer

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
  * The rule: a batch gets its offsets when it comes, and goes to the open segment. Of a segment the log is on the
  * store first, then its indexes, because vacuum finds the files of a killed task by their log. A segment
  * rolls where a broker's would, each batch being one append.
  *
  * @param newLog
  *   returns the log of a segment, by the name of its file
  */
final class SegmentStager(
    plan: TopicPlan,
    task: TaskAttempt,
    partition: Int,
    files: StagedFiles,
    newLog: String => SegmentLog
) extends AutoCloseable {
  private val settings = plan.settings
  private val firstOffset = plan.logEnds(partition)
  private var nextOffset = firstOffset
  private var segment: OpenSegment = null
  private var log: SegmentLog = null
  private var batchCount = 0
  private val crc = new CRC32C
  private var minTimestampMs = Long.MaxValue
  private val staged = ArrayBuffer.empty[StagedSegment]

  /** The segments on the store, in order. */
  def segments: Seq[StagedSegment] = staged.toSeq

  def add(batch: EncodedBatch): Unit = {
    val (data, records, maxMs) = (batch.data, batch.recordCount, batch.maxTimestampMs)
    val lastOffset = nextOffset + records - 1
    if (segment != null && segment.shouldRoll(data.length, lastOffset, maxMs, task.nowMs)) finish()
    if (segment == null) open()
    BatchEncoder.assignOffsets(
      batch,
      nextOffset,
      nextOffset - firstOffset,
      plan.leaderEpochs(partition),
      task
    )
    segment.append(data.length, lastOffset, maxMs)
    log.add(data)
    batchCount += 1
    crc.update(data)
    minTimestampMs = math.min(minTimestampMs, batch.minTimestampMs)
    nextOffset = lastOffset + 1
    files.counts.add(batch)
  }

  /** Completes the open segment on the store, if there is one. */
  def finish(): Unit = if (segment != null) finishSegment()

  /** Removes what is on the store of an open segment. */
  override def close(): Unit = if (log != null) log.close()

  private def open(): Unit = {
    segment = new OpenSegment(nextOffset, task.nowMs, settings)
    log = newLog(s"$file.log")
    batchCount = 0
    crc.reset()
    minTimestampMs = Long.MaxValue
  }

  /** The file of the open segment, without its suffix. */
  private def file: String =
    s"${plan.topic}-$partition/${SegmentStager.fileName(segment.baseOffset, plan.baseVersion, task.id)}"

  private def finishSegment(): Unit = {
    log.finish()
    val closed = segment
    val timeIndex = if (closed.isIndexed) closed.closedTimeIndex() else Array.emptyByteArray
    val offsetIndex = if (closed.isIndexed) closed.offsetIndex else Array.emptyByteArray
    if (closed.isIndexed) {
      files.put(s"$file.index", offsetIndex)
      files.put(s"$file.timeindex", timeIndex)
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
      batchCount,
      minTimestampMs,
      closed.largestTimestampMs
    )
    segment = null
    log = null
    files.counts.files += 1
  }
}

private[staging] object SegmentStager {

  /** Returns the name of a segment without its suffix, in the same digits in each locale. */
  def fileName(baseOffset: Long, baseVersion: Long, attempt: String): String =
    String.format(Locale.ROOT, "%020d-%010d-%s", Long.box(baseOffset), Long.box(baseVersion), attempt)
}
