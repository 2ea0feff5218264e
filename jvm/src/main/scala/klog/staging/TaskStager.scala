package klog.staging

import scala.collection.mutable

/** Stages the batches of one task: segments on the store, and a message to the commit.
  *
  * The rule: batches of a partition become its segments in the order in which they come.
  *
  * @param newLog
  *   returns the log of a segment, by the name of its file
  */
final class TaskStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    files: StagedFiles,
    newLog: String => SegmentLog
) extends AutoCloseable {
  private val topics = mutable.LinkedHashMap.empty[String, Array[SegmentStager]]

  def add(topic: String, partition: Int, batch: EncodedBatch): Unit = {
    partitionOf(topic, partition).add(batch)
    if (plan.topic.exists(_ != topic)) files.counts.deadLetters += batch.recordCount
  }

  /** Completes the open segment of a partition. */
  def finishSegment(topic: String, partition: Int): Unit = partitionOf(topic, partition).finish()

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

  override def close(): Unit =
    for (partitions <- topics.values; partition <- partitions if partition != null) partition.close()

  private def finished(partitions: Array[SegmentStager]): Seq[StagedSegment] =
    partitions.toSeq.filter(_ != null).flatMap { partition =>
      partition.finish()
      partition.segments
    }

  private def partitionOf(topic: String, number: Int): SegmentStager = {
    val topicPlan = plan.topicPlan(topic)
    val partitions = topics.getOrElseUpdate(topic, new Array[SegmentStager](topicPlan.partitions))
    if (partitions(number) == null)
      partitions(number) = new SegmentStager(topicPlan, task, number, files, newLog)
    partitions(number)
  }
}
