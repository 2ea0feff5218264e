package klog.staging

import klog.logformat.{BatchLimits, OpenBatch, RecordFields}

/** Which rows a topic takes, and why it takes others not: the checks of a broker (docs/write-plan.md, Rows).
  *
  * Whether a record is too large for `max.message.bytes` is known only after it is encoded.
  */
final class RowRules(plan: TopicPlan, task: TaskAttempt) {
  import RowRules._

  private val settings = plan.settings
  private val earliestMs = bound(settings.beforeMaxMs.map(task.nowMs - _), Long.MinValue)
  private val latestMs =
    bound(settings.afterMaxMs.map(ms => task.nowMs + math.min(ms, Long.MaxValue - task.nowMs)), Long.MaxValue)

  private def bound(value: Option[Long], none: Long): Long =
    if (settings.isAppendTime) none else value.getOrElse(none)

  /** Returns why a row cannot be written; empty if it can. Its timestamp is set. */
  def refusal(row: RowToWrite): String = {
    val timestampMs = if (row.hasTimestamp) row.timestampMs else task.nowMs
    row.fields.timestampMs = timestampMs
    if (timestampMs < NoTimestamp || timestampMs > latestMs || (timestampMs < earliestMs && timestampMs >= 0))
      timestampRefusal(timestampMs)
    else if (settings.isCompacted && row.fields.key.isNull)
      "it has no key, which a compacted topic needs; set it, or write to another topic"
    else if (row.fields.headers.count > 0 && headerRefusal(row.fields).nonEmpty) headerRefusal(row.fields)
    else if (OpenBatch.contentBytes(row.fields) > MaxRecordBytes) TooLarge
    else if (row.hasPartition && (row.partition < 0 || row.partition >= plan.partitions))
      s"there is no partition ${row.partition}, ${partitionBounds(row.partition)}"
    else ""
  }

  /** Returns how errors name a row. */
  def place(row: Long): String = s"${plan.topic}: row $row of task ${task.index}"

  private def timestampRefusal(timestampMs: Long): String =
    if (timestampMs < NoTimestamp)
      s"the timestamp, $timestampMs ms, is before 1970, or does not fit into milliseconds; correct it"
    else {
      val side = if (timestampMs < earliestMs) "before" else "after"
      s"the timestamp, $timestampMs ms, lies further $side now (${task.nowMs} ms) than " +
        s"message.timestamp.$side.max.ms allows; correct it, or raise that config of the topic"
    }

  private def headerRefusal(fields: RecordFields): String = {
    val headers = fields.headers
    if ((0 until headers.count).exists(headers.key(_).isNull))
      "a header without a key; give it one, or leave it out"
    else if (headers.count > BatchLimits.MaxRecordHeaders)
      s"the record has more than ${BatchLimits.MaxRecordHeaders} headers; leave some out"
    else ""
  }

  private def partitionBounds(partition: Long): String =
    if (plan.topicId.nonEmpty || partition < 0) s"only 0 to ${plan.partitions - 1}"
    else
      s"because the topic does not exist yet and gets ${plan.partitions}. Set numPartitions to " +
        "the number that the rows need, or drop the column partition"
}

object RowRules {
  private val NoTimestamp = -1L

  /** Leaves room for the batch's header and for the varints of its only record. */
  private val MaxRecordBytes = BatchLimits.MaxBatchBytes - 128
  val TooLarge: String = s"the record has more than $MaxRecordBytes bytes, which no batch holds; split it"

  /** Returns whether no batch holds the key and the value together: that fails the task in any case. */
  def isTooLargeForAny(fields: RecordFields): Boolean =
    fields.key.sizeBytes.toLong + fields.value.sizeBytes > MaxRecordBytes
}
