package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, DataWriterFactory}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.staging.{TopicPlan, WritePlan}
import klog.store.SegmentStores

/** The plan of a write, and how its tasks run it. Python plans when it is first asked for.
  *
  * @param writer
  *   Python's writer with the plan, pickled
  */
final class PlannedTasks(writer: => Array[Byte], schema: StructType, options: CaseInsensitiveStringMap) {
  private lazy val plan = PickledRequest.writePlan(writer)
  private lazy val whole = WritePlan.of(plan)
  private var isDistributed = false

  /** Returns the topic whose partitions rows are to be shuffled by; None if they are not. */
  def distributedTopic: Option[TopicPlan] =
    if (!"hash".equalsIgnoreCase(options.get("distributionMode"))) None
    else whole.topic.flatMap(whole.topics.get).filter(_.settings.partitioner == "murmur2")

  /** Says that rows are shuffled by partition: the task of a number gets the rows for the partition of it. */
  def setDistributed(): Unit = isDistributed = true

  /** Returns what makes the writers of the tasks. */
  def factory: StagingWriterFactory = {
    val path = options.getOrDefault("path", "")
    val stores = TaskStores.of(Seq(SegmentStores.scheme(path)), options)
    new StagingWriterFactory(plan, schema, stores, isDistributed)
  }
}

/** Makes the writers of tasks on executors.
  *
  * @param plan
  *   the plan of the write, as JSON
  */
final class StagingWriterFactory(plan: String, schema: StructType, stores: TaskStores, isDistributed: Boolean)
    extends DataWriterFactory
    with StreamingDataWriterFactory {
  override def createWriter(partition: Int, taskId: Long): DataWriter[InternalRow] =
    new StagingDataWriter(plan, schema, stores, partition, taskId, None, isDistributed)

  override def createWriter(partition: Int, taskId: Long, epoch: Long): DataWriter[InternalRow] =
    new StagingDataWriter(plan, schema, stores, partition, taskId, Some(epoch), isDistributed)
}
