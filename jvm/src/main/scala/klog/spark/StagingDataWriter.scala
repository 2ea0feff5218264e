package klog.spark

import java.io.IOException

import org.apache.spark.TaskContext
import org.apache.spark.api.python.KlogPythonError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge
import org.apache.spark.sql.types.StructType

import klog.store.SegmentStores
import klog.staging.{RowToWrite, StagingError, TaskAttempt, TaskStager, WritePlan, Writer}

/** Writes the rows of a task: they are staged, and the commit gets a message.
  *
  * @param epoch
  *   the number of the micro-batch; None for a batch
  */
final class StagingDataWriter(
    planJson: String,
    schema: StructType,
    stores: TaskStores,
    partition: Int,
    taskId: Long,
    epoch: Option[Long],
    isDistributed: Boolean
) extends DataWriter[InternalRow] {
  private val columns = new RowColumns(schema)
  private val row = new RowToWrite
  private val stager = classified {
    val plan = WritePlan.of(planJson)
    val writer = TaskWriter.of(plan, TaskContext.get(), epoch)
    val task = TaskAttempt.of(plan, writer, partition, taskId, System.currentTimeMillis)
    val store = stores.toStores.of(plan.root)
    new TaskStager(plan, writer, task, store, SegmentStores.spelled(plan.root), isDistributed)
  }

  override def write(record: InternalRow): Unit = {
    columns.read(record, row)
    classified(stager.add(row))
  }

  override def commit(): WriterCommitMessage = {
    val message = classified(stager.finish()).toJson
    StagedMessage(KlogPythonBridge.commitMessage(PickledRequest.commitMessage(message)), stager.counts)
  }

  /** Leaves what is staged to vacuum. */
  override def abort(): Unit = ()

  override def close(): Unit = stager.close()

  override def currentMetricsValues(): Array[CustomTaskMetric] = WriteMetrics.ofTasks.values(stager.counts)

  private def classified[T](work: => T): T =
    try work
    catch {
      case exc: StagingError =>
        throw KlogPythonError.of(exc.pythonClass, stores.withoutSecrets(exc.sentence), exc)
      case exc: IOException =>
        val reason = stores.withoutSecrets(StagingError.reason(exc))
        throw KlogPythonError.of(
          "KlogError",
          s"a task cannot write: $reason. Check the root and its options",
          exc
        )
    }
}

/** Who writes, as the local properties of a task say it (`klog.connector.sink.spark_writers`). */
private object TaskWriter {
  private val Query = "sql.streaming.queryId"
  private val Batch = "streaming.sql.batchId"
  private val Run = "spark.jobGroup.id"
  private val Uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

  def of(plan: WritePlan, context: TaskContext, epoch: Option[Long]): Option[Writer] = {
    def property(name: String): String = Option(context.getLocalProperty(name)).getOrElse("")
    val query = property(Query)
    val run = if (query.nonEmpty && property(Run).matches(Uuid)) property(Run) else plan.writeId
    epoch match {
      case None =>
        for (name <- plan.transactionalId; version <- plan.transactionVersion)
          yield Writer(name, version, query, run)
      case Some(_) if query.isEmpty || property(Batch).isEmpty =>
        throw StagingError.failed(
          s"Spark does not say whose rows these are ($Query is '$query', $Batch is '${property(Batch)}'): without " +
            "it a stream cannot be written exactly once. Write it from foreachBatch, with transactionalId and " +
            "transactionVersion"
        )
      case Some(_) =>
        Some(Writer(plan.transactionalId.getOrElse(query), property(Batch).toLong, query, run))
    }
  }
}
