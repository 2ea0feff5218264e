package klog.staging

import scala.collection.mutable

/** A batch that goes from the task of its rows to the task of its partition.
  *
  * @param task
  *   the task of its rows
  * @param number
  *   its number among the batches of that task for the partition
  */
final case class BatchKey(topic: String, partition: Int, task: Int, number: Int)

object BatchKey {

  /** The batches of a partition are together, in the order of their tasks. */
  implicit val ordering: Ordering[BatchKey] =
    Ordering.by(key => (key.topic, key.partition, key.task, key.number))
}

/** A batch with its key. */
final case class KeyedBatch(key: BatchKey, batch: EncodedBatch)

/** A task that gets the batches of some partitions from all tasks: they become segments.
  *
  * The rule: they come partition after partition, and those of one in the order of their tasks. So the rows
  * lie in its segments as if each task had written its own, and one segment is open at a time: batches go to the
  * store as they come, and the memory of the task is that of a batch.
  */
final class BatchStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    files: StagedFiles
) extends StagingTask[KeyedBatch] {
  private val stager = new TaskStager(plan, writer, task, files, file => new StreamedLog(files.create(file)))
  private val encoders = mutable.Map.empty[String, BatchEncoder]
  private var partition: Option[OpenPartition] = None
  private val finished = mutable.Set.empty[(String, Int)]

  override def add(item: KeyedBatch): Unit = {
    val key = item.key
    if (!partition.exists(open => open.topic == key.topic && open.number == key.partition)) {
      partition.foreach(_.close())
      if (finished((key.topic, key.partition))) throw outOfOrder(s"$key after other partitions")
      partition = Some(new OpenPartition(key.topic, key.partition))
    }
    partition.get.add(item)
  }

  override def finish(): CommitMessage = {
    partition.foreach(_.close())
    stager.finish(hasRows = partition.nonEmpty)
  }

  override def close(): Unit = {
    encoders.values.foreach(_.close())
    stager.close()
  }

  private def outOfOrder(what: String) =
    StagingError.failed(
      s"Spark's shuffle gave the batch $what. Run the write again, or set distributionMode=none"
    )

  private final class OpenPartition(val topic: String, val number: Int) {
    private val settings = plan.topicPlan(topic).settings
    private val encoder = encoders.getOrElseUpdate(topic, new BatchEncoder(settings, task.nowMs))
    private val cutter =
      new BatchCutter(settings, encoder, leavesPartial = false, stager.add(topic, number, _))
    private var last = BatchKey(topic, number, -1, -1)

    def add(item: KeyedBatch): Unit = {
      val key = item.key
      val isNext =
        if (key.task == last.task) key.number == last.number + 1 else key.task > last.task && key.number == 0
      if (!isNext) throw outOfOrder(s"$key after $last")
      last = key
      cutter.add(item.batch)
    }

    def close(): Unit = {
      cutter.flush()
      finished.add((topic, number))
      stager.finishSegment(topic, number)
    }
  }
}
