package klog.staging

import scala.collection.mutable

import klog.store.WritableSegmentStore

/** One task's part of a write: from its rows to segments on the store and a message to the commit.
  *
  * The rule (docs/write-plan.md): a row goes to the topic that the write names, or else to the one that it
  * names itself. A row that cannot be written fails the task, or becomes a dead letter. Rows and batches
  * wait within `buffer.memory`, all topics together. A batch that the topic has already is not staged.
  *
  * @param root
  *   the path of the root, as the store spells it
  * @param isDistributed
  *   whether the rows of the plan's topic were shuffled by partition, so that each task has one
  */
final class TaskStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    store: WritableSegmentStore,
    root: String,
    isDistributed: Boolean = false
) extends AutoCloseable {
  val counts: WriteCounts = new WriteCounts

  /** Whether the topic has this batch of the writer already. */
  val isCommitted: Boolean =
    writer.exists(by => by.batchId <= plan.lastBatches.getOrElse(by.name, -1L))

  private val spool = new BatchSpool
  private val stagers = mutable.LinkedHashMap.empty[String, TopicStager]
  private val deadLetters = plan.deadLetterTopic.map { topic =>
    topic -> new DeadLetters(writer.fold(plan.writeId)(by => s"${by.name}/${by.batchId}"), task.index)
  }
  private val named = plan.topic.filter(_ => !isCommitted).map(stagerOf)
  private var rowCount = 0L

  /** Takes the next row.
    *
    * @throws StagingError
    *   if it cannot be written, and there is no topic for dead letters
    */
  def add(row: RowToWrite): Unit = if (!isCommitted) {
    named match {
      case Some(stager) => addTo(stager, plan.topic.get, row)
      case None if row.topic == null =>
        reject(
          row,
          None,
          "its topic is null; set it, or name one topic for all rows",
          s"row $rowCount of task ${task.index}"
        )
      case None => addTo(stagerOf(row.topic), row.topic, row)
    }
    rowCount += 1
    freeMemory()
  }

  /** Puts what is left on the store; returns what the task has done. */
  def finish(): CommitMessage = {
    val segments = stagers.toSeq.map { case (topic, stager) => topic -> stager.finish() }
    val written = segments.filter { case (topic, staged) =>
      staged.nonEmpty || (plan.topic.contains(topic) && rowCount > 0)
    }
    val topics = written.map { case (topic, staged) => StagedTopic(plan.topics(topic), staged) }
    CommitMessage(plan.writeId, task, writer, isCommitted, topics)
  }

  override def close(): Unit = {
    stagers.values.foreach(_.close())
    spool.close()
  }

  private def addTo(stager: TopicStager, topic: String, row: RowToWrite): Unit = {
    val refusal = stager.add(row, rowCount)
    if (refusal.nonEmpty) reject(row, Some(topic), refusal, stager.place(rowCount))
  }

  private def reject(row: RowToWrite, topic: Option[String], reason: String, place: String): Unit =
    deadLetters match {
      case Some((deadTopic, letters)) if !topic.contains(deadTopic) =>
        val timestampMs = Option.when(row.hasTimestamp && row.timestampMs != -1)(row.timestampMs)
        val letter = letters.of(row, topic, timestampMs, reason, rowCount)
        val stager = stagerOf(deadTopic)
        val refusal = stager.add(letter, rowCount)
        if (refusal.nonEmpty) throw StagingError.failed(s"${stager.place(rowCount)}: $refusal")
        counts.deadLetters += 1
      case _ => throw StagingError.failed(s"$place: $reason")
    }

  private def stagerOf(topic: String): TopicStager = stagers.getOrElseUpdate(topic, newStager(topic))

  private def newStager(topic: String): TopicStager = {
    val planned = plan.topics.getOrElse(
      topic,
      throw StagingError.failed(
        s"there is no topic $topic for dead letters; create it with klog topics create"
      )
    )
    new TopicStager(planned, task, root, store, spool, counts, isDistributed && plan.topic.contains(topic))
  }

  /** Keeps records and batches within `buffer.memory`. */
  private def freeMemory(): Unit = {
    val waiting = waitingBytes
    if (waiting + spool.memoryBytes > plan.bufferBytes) {
      if (waiting > plan.bufferBytes / 2) stagers.values.foreach(_.flush())
      if (waitingBytes + spool.memoryBytes > plan.bufferBytes) spool.spill()
    }
  }

  private def waitingBytes: Long = {
    var bytes = 0L
    val all = stagers.valuesIterator
    while (all.hasNext) bytes += all.next().memoryBytes
    bytes
  }
}
