package klog.staging

import klog.store.WritableSegmentStore

/** One task's part of a write: its rows become segments, within `buffer.memory`.
  *
  * The rule: records in open batches and batches in open segments share the memory. If it is short, records
  * that take more than half of it become batches, and batches go to the local disk.
  */
final class RowStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    store: WritableSegmentStore,
    root: String
) extends StagingTask[RowToWrite] {
  private val stager = new TaskStager(plan, writer, task, store, root)
  private val rows = new TaskRows(plan, writer, task, leavesPartial = false, stager.add)

  override def counts: WriteCounts = stager.counts

  override def add(row: RowToWrite): Unit = {
    rows.add(row)
    val waiting = rows.memoryBytes
    if (waiting + stager.memoryBytes > plan.bufferBytes) {
      if (waiting > plan.bufferBytes / 2) rows.flush()
      if (rows.memoryBytes + stager.memoryBytes > plan.bufferBytes) stager.spill()
    }
  }

  override def finish(): CommitMessage = {
    rows.flush()
    stager.finish(hasRows = rows.rowCount > 0)
  }

  override def close(): Unit = {
    rows.close()
    stager.close()
  }
}
