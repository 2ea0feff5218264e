package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, DataWriterFactory}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.staging.WritePlan

/** The plan of a write, and how its tasks run it. Python plans when it is first asked for.
  *
  * @param writer
  *   Python's writer with the plan, pickled
  * @param isStream
  *   whether this is a micro-batch
  */
final class PlannedTasks(
    writer: => Array[Byte],
    schema: StructType,
    options: CaseInsensitiveStringMap,
    sink: SinkState,
    isStream: Boolean
) {
  private var ends: Seq[() => Unit] = Nil

  /** What tasks know. */
  lazy val work: TaskWork = {
    val plan = PickledRequest.writePlan(writer)
    new TaskWork(plan, schema, sink.storesOf(options), isStream, System.currentTimeMillis)
  }

  /** The plan that the tasks get. */
  lazy val plan: WritePlan = work.classified(work.plan)

  /** Has something done when the write has been committed or aborted. */
  def onEnd(action: () => Unit): Unit = synchronized { ends :+= action }

  /** Says that the write has been committed or aborted. */
  def end(): Unit = synchronized {
    ends.foreach(action => action())
    ends = Nil
  }

  def topic: String = options.get("topic")

  /** Whether the write is to leave one file for each partition and roll. */
  def isDistributed: Boolean = !"none".equalsIgnoreCase(options.get("distributionMode"))

  /** Whether each task may write to each partition, as its rows have a partition or a key. */
  def areRowsSpread: Boolean = {
    def has(column: String) = RowColumns.ordinal(schema, column) >= 0
    has("partition") || isOrderSensitive || (has("key") && partitioner.contains("murmur2"))
  }

  /** Whether the order of the rows of a task decides which partitions they go to. */
  def isOrderSensitive: Boolean = partitioner.contains("round-robin")

  private def partitioner: Option[String] = plan.topic.map(plan.topicPlan(_).settings.partitioner)
}

/** Makes the writers of tasks on executors. */
final class StagingWriterFactory(work: TaskWork) extends DataWriterFactory with StreamingDataWriterFactory {
  override def createWriter(partition: Int, taskId: Long): DataWriter[InternalRow] =
    new StagingDataWriter(work, partition, taskId)

  override def createWriter(partition: Int, taskId: Long, epoch: Long): DataWriter[InternalRow] =
    createWriter(partition, taskId)
}
