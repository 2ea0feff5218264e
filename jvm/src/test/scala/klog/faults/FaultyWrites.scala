package klog.faults

import org.apache.spark.TaskContext
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.{AppendDataExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite

import klog.spark.{DistributedRowsExec, KlogStreamingWrite, KlogWrite}

/** Puts the faults of [[Faults]] into the writes of the JVM: `spark.sql.extensions` of a driver under test.
  *
  * The points are those of a task in Python: `stage`, `batch` after ten rows each, and `staged`. A task whose
  * batches are shuffled has `rows`, after ten of them.
  */
final class FaultyWrites extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar((_: SparkSession) =>
      new ColumnarRule {
        override def preColumnarTransitions: Rule[SparkPlan] = FaultyWrites
      }
    )
}

private object FaultyWrites extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = plan match {
    case append: AppendDataExec =>
      append.write match {
        case write: KlogWrite =>
          append.copy(write = new FaultyWrite(write), query = withFaults(append.query, topicOf(write)))
        case _ => append
      }
    case write: WriteToDataSourceV2Exec =>
      write.batchWrite match {
        case batch: MicroBatchWrite =>
          batch.writeSupport match {
            case stream: KlogStreamingWrite =>
              val topic = topicOf(stream)
              write.copy(
                batchWrite = new FaultyBatchWrite(batch, topic),
                query = withFaults(write.query, topic)
              )
            case _ => write
          }
        case _ => write
      }
    case other => other
  }

  private def withFaults(query: SparkPlan, topic: String): SparkPlan = query match {
    case rows: DistributedRowsExec => rows.copy(child = FaultyRowsExec(rows.child, topic))
    case other => other
  }

  /** Returns the topic of a write, as EXPLAIN shows it. */
  def topicOf(write: AnyRef): String = write.toString.split("topic ")(1)
}

private final class FaultyWrite(real: KlogWrite) extends Write {
  override def toBatch: BatchWrite = new FaultyBatchWrite(real.toBatch, FaultyWrites.topicOf(real))
  override def supportedCustomMetrics(): Array[CustomMetric] = real.supportedCustomMetrics
}

private final class FaultyBatchWrite(real: BatchWrite, topic: String) extends BatchWrite {
  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
    new FaultyFactory(real.createBatchWriterFactory(info), topic)
  override def useCommitCoordinator(): Boolean = real.useCommitCoordinator
  override def commit(messages: Array[WriterCommitMessage]): Unit = real.commit(messages)
  override def abort(messages: Array[WriterCommitMessage]): Unit = real.abort(messages)
}

private final case class FaultyRowsExec(child: SparkPlan, topic: String) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def doExecute(): RDD[InternalRow] = {
    val of = topic
    child.execute().mapPartitions { rows =>
      val facts = TaskFacts.of(of, TaskContext.getPartitionId())
      rows.zipWithIndex.map { case (row, number) =>
        if (number == 10) Faults.reached("rows", facts)
        row
      }
    }
  }
  override protected def withNewChildInternal(newChild: SparkPlan): FaultyRowsExec = copy(newChild)
}

private object TaskFacts {
  def of(topic: String, task: Int): Map[String, Any] = {
    val batch = Option(TaskContext.get().getLocalProperty("streaming.sql.batchId")).map("batch" -> _)
    Map[String, Any]("topic" -> topic, "task" -> task) ++ batch
  }
}

private final class FaultyFactory(real: DataWriterFactory, topic: String) extends DataWriterFactory {
  override def createWriter(partition: Int, taskId: Long): DataWriter[InternalRow] = {
    val facts = TaskFacts.of(topic, partition)
    Faults.reached("stage", facts)
    new FaultyWriter(real.createWriter(partition, taskId), facts)
  }
}

private final class FaultyWriter(real: DataWriter[InternalRow], facts: Map[String, Any])
    extends DataWriter[InternalRow] {
  private val RowsPerBatch = 10
  private var rows = 0

  override def write(record: InternalRow): Unit = {
    real.write(record)
    rows += 1
    if (rows % RowsPerBatch == 0) Faults.reached("batch", facts + ("number" -> (rows / RowsPerBatch - 1)))
  }

  override def commit(): WriterCommitMessage = {
    val message = real.commit()
    Faults.reached("staged", facts)
    message
  }

  override def abort(): Unit = real.abort()
  override def close(): Unit = real.close()
  override def currentMetricsValues(): Array[CustomTaskMetric] = real.currentMetricsValues
}
