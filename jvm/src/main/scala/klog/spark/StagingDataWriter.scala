package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge

import klog.store.SegmentStores
import klog.staging._

/** Writes what a task gets, rows or batches: they are staged, and the commit gets a message. */
final class StagingDataWriter(work: TaskWork, partition: Int, taskId: Long) extends DataWriter[InternalRow] {
  private val columns = new RowColumns(work.schema)
  private val row = new RowToWrite
  private val (plan, writer) = work.classified((work.plan, work.writer))
  private val files = work.classified {
    new StagedFiles(work.stores.toStores.of(plan.root), SegmentStores.spelled(plan.root))
  }
  private var stager: Option[StagingTask[_]] = None
  private lazy val rows = opened(new RowStager(plan, writer, attempt(System.currentTimeMillis), files))
  private lazy val batches = opened(new BatchStager(plan, writer, attempt(work.plannedMs), files))

  override def write(record: InternalRow): Unit = record match {
    case batch: BatchRow => work.classified(batches.add(batch.batch))
    case _: ExtraRow =>
    case _ =>
      columns.read(record, row)
      work.classified(rows.add(row))
  }

  override def commit(): WriterCommitMessage = {
    val message = work.classified(stager.getOrElse(rows).finish()).toJson
    StagedMessage(KlogPythonBridge.commitMessage(PickledRequest.commitMessage(message)), files.counts)
  }

  /** Leaves what is staged to vacuum. */
  override def abort(): Unit = ()

  override def close(): Unit = stager.foreach(_.close())

  private def attempt(nowMs: Long): TaskAttempt = TaskAttempt.of(plan, writer, partition, taskId, nowMs)

  private def opened[T <: StagingTask[_]](task: T): T = {
    stager = Some(task)
    task
  }
}
