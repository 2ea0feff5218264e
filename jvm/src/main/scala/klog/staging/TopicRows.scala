package klog.staging

import klog.logformat.{BatchHeader, Murmur2, OpenBatch, RecordFields}

/** The rows of one topic that one task gets: checked, spread over the partitions, and cut into batches.
  *
  * The rule: the column `partition` decides. If it is null or absent, the partitioner does: `murmur2` by
  * Kafka's hash of the key, and for a row without a key the task's sticky partition; `sticky` always that;
  * `round-robin` the next partition with each row of the task, from the sticky one on.
  *
  * @param leavesPartial
  *   whether another task gets the batches, and packs partial ones again
  * @param output
  *   called with the partition and each batch
  */
final class TopicRows(
    plan: TopicPlan,
    task: TaskAttempt,
    leavesPartial: Boolean,
    output: (Int, EncodedBatch) => Unit
) extends AutoCloseable {
  private val settings = plan.settings
  private val rules = new RowRules(plan, task)
  private val encoder = new BatchEncoder(settings, task.nowMs)
  private val partitions = new Array[BatchCutter](plan.partitions)
  private val stickyPartition = ((plan.baseVersion + task.index) % plan.partitions).toInt
  private val surelyFits = settings.maxBatchBytes - math.max(settings.maxBatchBytes / 8, 64)

  /** The memory of the records that are not in a batch yet. */
  var memoryBytes: Long = 0

  /** Takes a row.
    *
    * @param number
    *   its number among all rows of the task
    * @return
    *   why it cannot be written; empty if it can
    */
  def add(row: RowToWrite, number: Long): String = {
    if (RowRules.isTooLargeForAny(row.fields))
      throw StagingError.failed(s"${place(number)}: ${RowRules.TooLarge}")
    val refusal = rules.refusal(row)
    if (refusal.nonEmpty) refusal
    else {
      val tooLarge = sizeRefusal(row.fields)
      if (tooLarge.isEmpty) addTo(partitionOf(row, number), row.fields) else setTimestamp(row)
      tooLarge
    }
  }

  /** Returns how errors name a row. */
  def place(number: Long): String = rules.place(number)

  /** Cuts the records that wait, also if they are too few for a batch, and frees their memory. */
  def flush(): Unit = {
    partitions.iterator.filter(_ != null).foreach(_.flush())
    memoryBytes = 0
  }

  override def close(): Unit = encoder.close()

  /** A dead letter of a row that is too large has the time of staging if the row has no time. */
  private def setTimestamp(row: RowToWrite): Unit = {
    row.hasTimestamp = true
    row.timestampMs = row.fields.timestampMs
  }

  private def addTo(number: Int, record: RecordFields): Unit = {
    if (partitions(number) == null) {
      partitions(number) = new BatchCutter(settings, encoder, leavesPartial, output(number, _))
    }
    val partition = partitions(number)
    val before = partition.memoryBytes
    partition.add(record)
    memoryBytes += partition.memoryBytes - before
  }

  private def partitionOf(row: RowToWrite, number: Long): Int =
    if (row.hasPartition) row.partition.toInt
    else if (settings.partitioner == "round-robin") ((stickyPartition + number) % plan.partitions).toInt
    else if (settings.partitioner == "sticky" || row.fields.key.isNull) stickyPartition
    else Murmur2.partition(row.fields.key, plan.partitions)

  /** Returns why a record is too large for a batch: one that may be is encoded alone to learn its size. */
  private def sizeRefusal(record: RecordFields): String =
    if (BatchHeader.HeaderBytes + OpenBatch.contentBytes(record) < surelyFits) ""
    else {
      val alone = new OpenBatch(0)
      alone.add(record)
      val size = encoder.encode(alone).data.length
      val name = if (settings.maxBatchBytes == settings.segmentBytes) "segment.bytes" else "max.message.bytes"
      if (size <= settings.maxBatchBytes) ""
      else
        s"the record makes a batch of $size bytes, $name allows ${settings.maxBatchBytes}; raise it, or make the " +
          "record smaller"
    }
}
