package klog.staging

import scala.collection.mutable

import klog.store.WritableSegmentStore

/** A batch that goes from the task of its rows to the task of its partition.
  *
  * @param task
  *   the task of its rows
  * @param number
  *   its number among the batches of that task
  */
final case class BatchPlace(topic: String, partition: Int, task: Int, number: Int)

object BatchPlace {

  /** The batches of a partition are together, in the order of their tasks. */
  implicit val ordering: Ordering[BatchPlace] =
    Ordering.by(place => (place.topic, place.partition, place.task, place.number))
}

/** A batch and where it belongs. */
final case class PlacedBatch(place: BatchPlace, batch: EncodedBatch)

/** A task that gets the batches of some partitions from all tasks: they become segments.
  *
  * The rule: they come in the order of [[BatchPlace]], so the rows of a partition lie in its segments as if
  * each task had written its own. A partition's last segment is closed when the next partition begins.
  */
final class BatchStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    store: WritableSegmentStore,
    root: String
) extends StagingTask[PlacedBatch] {
  private val stager = new TaskStager(plan, writer, task, store, root)
  private val encoders = mutable.Map.empty[String, BatchEncoder]
  private var partition: Option[OpenPartition] = None

  override def counts: WriteCounts = stager.counts

  override def add(item: PlacedBatch): Unit = {
    val place = item.place
    if (!partition.exists(open => open.topic == place.topic && open.number == place.partition)) {
      partition.foreach(_.close())
      partition = Some(new OpenPartition(place.topic, place.partition))
    }
    partition.get.cutter.add(item.batch)
    if (stager.memoryBytes > plan.bufferBytes) stager.spill()
  }

  override def finish(): CommitMessage = {
    partition.foreach(_.close())
    stager.finish(hasRows = partition.nonEmpty)
  }

  override def close(): Unit = {
    encoders.values.foreach(_.close())
    stager.close()
  }

  private final class OpenPartition(val topic: String, val number: Int) {
    private val settings = plan.topicPlan(topic).settings
    private val encoder = encoders.getOrElseUpdate(topic, new BatchEncoder(settings, task.nowMs))
    val cutter =
      new BatchCutter(settings, encoder, isPackedLater = false, stager.add(topic, number, _))

    def close(): Unit = {
      cutter.flush()
      stager.closeSegment(topic, number)
    }
  }
}
