package klog.staging

import scala.collection.mutable

import klog.store.WritableSegmentStore

/** Stages the batches of one task: segments on the store, and a message to the commit.
  *
  * The rule: batches of a partition become its segments in the order in which they come. They wait in a
  * spool until their segment is closed.
  *
  * @param root
  *   the path of the root, as the store spells it
  */
final class TaskStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    store: WritableSegmentStore,
    root: String
) extends AutoCloseable {
  val counts: WriteCounts = new WriteCounts
  private val spool = new BatchSpool
  private val topics = mutable.LinkedHashMap.empty[String, Array[SegmentStager]]

  def add(topic: String, partition: Int, batch: EncodedBatch): Unit = {
    partitionOf(topic, partition).add(batch)
    if (plan.topic.exists(_ != topic)) counts.deadLetters += batch.recordCount
  }

  /** The memory of the batches that wait. */
  def memoryBytes: Long = spool.memoryBytes

  /** Moves the batches that wait to the local disk. */
  def spill(): Unit = spool.spill()

  /** Puts the open segment of a partition on the store. */
  def closeSegment(topic: String, partition: Int): Unit = partitionOf(topic, partition).close()

  /** Puts what is left on the store; returns what the task has done.
    *
    * @param hasRows
    *   whether there were rows for the topic of the write, also if all were rejected
    */
  def finish(hasRows: Boolean): CommitMessage = {
    val staged = topics.toSeq.map { case (topic, partitions) => topic -> finished(partitions) }
    val named = plan.topic.filter(topic => hasRows && !topics.contains(topic)).map(_ -> Seq.empty)
    val all = (named ++ staged).map { case (topic, segments) => StagedTopic(plan.topicPlan(topic), segments) }
    CommitMessage(plan.writeId, task, writer, plan.isCommitted(writer), all.toSeq)
  }

  override def close(): Unit = spool.close()

  private def finished(partitions: Array[SegmentStager]): Seq[StagedSegment] =
    partitions.toSeq.filter(_ != null).flatMap { partition =>
      partition.close()
      partition.segments
    }

  private def partitionOf(topic: String, number: Int): SegmentStager = {
    val topicPlan = plan.topicPlan(topic)
    val partitions = topics.getOrElseUpdate(topic, new Array[SegmentStager](topicPlan.partitions))
    if (partitions(number) == null)
      partitions(number) = new SegmentStager(topicPlan, task, number, root, store, spool, counts)
    partitions(number)
  }
}
