package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge

import klog.store.SegmentStores
import klog.staging.{BatchStager, RowStager, RowToWrite, StagingTask, TaskAttempt, WriteCounts}

/** Writes what a task gets, rows or batches: they are staged, and the commit gets a message. */
final class StagingDataWriter(work: TaskWork, partition: Int, taskId: Long) extends DataWriter[InternalRow] {
  private val columns = new RowColumns(work.schema)
  private val row = new RowToWrite
  private val (plan, writer) = work.classified((work.plan, work.writer))
  private val task = TaskAttempt.of(plan, writer, partition, taskId, System.currentTimeMillis)
  private val store = work.classified(work.stores.toStores.of(plan.root))
  private val root = SegmentStores.spelled(plan.root)
  private lazy val rows = new RowStager(plan, writer, task, store, root)
  private lazy val batches = new BatchStager(plan, writer, task, store, root)
  private var used: Option[StagingTask[_]] = None

  override def write(record: InternalRow): Unit = record match {
    case batch: BatchRow =>
      used = Some(batches)
      work.classified(batches.add(batch.batch))
    case _: RowOfBatch =>
    case _ =>
      used = Some(rows)
      columns.read(record, row)
      work.classified(rows.add(row))
  }

  override def commit(): WriterCommitMessage = {
    val message = work.classified(used.getOrElse(rows).finish()).toJson
    StagedMessage(KlogPythonBridge.commitMessage(PickledRequest.commitMessage(message)), counts)
  }

  /** Leaves what is staged to vacuum. */
  override def abort(): Unit = ()

  override def close(): Unit = used.foreach(_.close())

  override def currentMetricsValues(): Array[CustomTaskMetric] = WriteMetrics.ofTasks.values(counts)

  private def counts: WriteCounts = used.fold(new WriteCounts)(_.counts)
}
