package klog.staging

import scala.collection.mutable

/** The rows that one task gets: each goes to its topic, and leaves it in a batch.
  *
  * The rule (docs/write-plan.md): a row goes to the topic that the write names, or else to the one that it
  * names itself. A row that cannot be written fails the task, or becomes a dead letter. Rows of a batch that
  * the topic has already are passed over.
  *
  * @param leavesPartial
  *   whether another task gets the batches, and packs partial ones again
  * @param output
  *   called with the topic, the partition and each batch
  */
final class TaskRows(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    leavesPartial: Boolean,
    output: (String, Int, EncodedBatch) => Unit
) extends AutoCloseable {
  private val isCommitted = plan.isCommitted(writer)
  private val topics = mutable.LinkedHashMap.empty[String, TopicRows]
  private val deadLetters = plan.deadLetterTopic.map { topic =>
    topic -> new DeadLetters(writer.fold(plan.writeId)(by => s"${by.name}/${by.batchId}"), task.index)
  }
  private val named = plan.topic.filter(_ => !isCommitted).map(rowsOf)

  /** The rows so far. */
  var rowCount: Long = 0

  /** The memory of the records that are not in a batch yet. */
  var memoryBytes: Long = 0

  /** Takes the next row.
    *
    * @throws StagingError
    *   if it cannot be written, and there is no topic for dead letters
    */
  def add(row: RowToWrite): Unit = if (!isCommitted) {
    named match {
      case Some(rows) => addTo(rows, plan.topic.get, row)
      case None if row.topic == null =>
        reject(
          row,
          None,
          "its topic is null; set it, or name one topic for all rows",
          s"row $rowCount of task ${task.index}"
        )
      case None => addTo(rowsOf(row.topic), row.topic, row)
    }
    rowCount += 1
  }

  /** Cuts the records that wait, also if they are too few for a batch, and frees their memory. */
  def flush(): Unit = {
    topics.values.foreach(_.flush())
    memoryBytes = 0
  }

  override def close(): Unit = topics.values.foreach(_.close())

  private def addTo(rows: TopicRows, topic: String, row: RowToWrite): Unit = {
    val refusal = addRow(rows, row)
    if (refusal.nonEmpty) reject(row, Some(topic), refusal, rows.place(rowCount))
  }

  private def addRow(rows: TopicRows, row: RowToWrite): String = {
    val before = rows.memoryBytes
    val refusal = rows.add(row, rowCount)
    memoryBytes += rows.memoryBytes - before
    refusal
  }

  private def reject(row: RowToWrite, topic: Option[String], reason: String, place: String): Unit =
    deadLetters match {
      case Some((deadTopic, letters)) if !topic.contains(deadTopic) =>
        val timestampMs = Option.when(row.hasTimestamp && row.timestampMs != -1)(row.timestampMs)
        val letter = letters.of(row, topic, timestampMs, reason, rowCount)
        val dead = rowsOf(deadTopic)
        val refusal = addRow(dead, letter)
        if (refusal.nonEmpty) throw StagingError.failed(s"${dead.place(rowCount)}: $refusal")
      case _ => throw StagingError.failed(s"$place: $reason")
    }

  private def rowsOf(topic: String): TopicRows = topics.getOrElseUpdate(
    topic,
    new TopicRows(plan.topicPlan(topic), task, leavesPartial, output(topic, _, _))
  )
}
