package klog.staging

import java.io.IOException
import java.util.Locale
import java.util.zip.CRC32C

import scala.collection.mutable.ArrayBuffer

import klog.logformat.{OpenBatch, RecordFields}
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

/** Stages the segments of one partition: records in, files on the store out.
  *
  * The rule: a record goes to the open batch, a full batch to the open segment, and a segment to the store
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
    encoder: BatchEncoder,
    counts: WriteCounts
) {
  private val settings = plan.settings
  private val records = new OpenBatch(settings.batchBytes)
  private val firstOffset = plan.logEnds(partition)
  private var nextOffset = firstOffset
  private var segment: OpenSegment = null
  private val batches = ArrayBuffer.empty[SpooledBatch]
  private val crc = new CRC32C
  private var minTimestampMs = Long.MaxValue
  private val staged = ArrayBuffer.empty[StagedSegment]

  /** The segments on the store, in order. */
  def segments: Seq[StagedSegment] = staged.toSeq

  /** The memory of the records that are not encoded yet. */
  def memoryBytes: Int = records.memoryBytes

  def add(record: RecordFields): Unit =
    if (!records.add(record)) {
      encodeRecords(records)
      records.clear()
      records.add(record)
    }

  /** Encodes the records that wait, also if they are too few for a batch, and frees their memory. */
  def flush(): Unit = {
    if (!records.isEmpty) encodeRecords(records)
    records.release()
  }

  /** Puts the open segment on the store, if there is one. */
  def close(): Unit = {
    flush()
    if (segment != null) putSegment()
  }

  /** Encodes a batch; if compression makes it too large, its records become smaller ones. */
  private def encodeRecords(records: OpenBatch): Unit = {
    val batch = encoder.encode(records, nextOffset, nextOffset - firstOffset, plan.leaderEpochs(partition))
    if (batch.length > settings.maxBatchBytes && records.count > 1) records.split(encodeRecords)
    else addBatch(batch, records)
  }

  private def addBatch(batch: Array[Byte], records: OpenBatch): Unit = {
    val lastOffset = nextOffset + records.count - 1
    val maxMs = if (settings.isAppendTime) task.nowMs else records.maxTimestampMs
    if (segment != null && segment.shouldRoll(batch.length, lastOffset, maxMs, task.nowMs)) putSegment()
    if (segment == null) segment = new OpenSegment(nextOffset, task.nowMs, settings)
    segment.append(batch.length, lastOffset, maxMs)
    batches += spool.add(batch)
    crc.update(batch)
    minTimestampMs =
      math.min(minTimestampMs, if (settings.isAppendTime) task.nowMs else records.minTimestampMs)
    nextOffset = lastOffset + 1
    counts.records += records.count
    counts.batches += 1
    counts.plainBytes += records.end
    counts.bytes += batch.length
  }

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
