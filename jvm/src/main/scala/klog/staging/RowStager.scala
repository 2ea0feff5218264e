package klog.staging

/** One task's part of a write: its rows become segments, within `buffer.memory`.
  *
  * The rule: records in open batches and batches in open segments share the memory. If it is short, records
  * that take more than half of it become batches, and batches go to the local disk.
  */
final class RowStager(
    plan: WritePlan,
    writer: Option[Writer],
    task: TaskAttempt,
    files: StagedFiles
) extends StagingTask[RowToWrite] {
  private val spool = BatchSpool.ofJava()
  private val stager =
    new TaskStager(plan, writer, task, files, file => new SpooledLog(files.create(file), spool))
  private val rows = new TaskRows(plan, writer, task, leavesPartial = false, stager.add)

  override def add(row: RowToWrite): Unit = {
    rows.add(row)
    val waiting = rows.memoryBytes
    if (waiting + spool.memoryBytes > plan.bufferBytes) {
      if (waiting > plan.bufferBytes / 2) rows.flush()
      if (rows.memoryBytes + spool.memoryBytes > plan.bufferBytes) spool.spill()
    }
  }

  override def finish(): CommitMessage = {
    rows.flush()
    stager.finish(hasRows = rows.rowCount > 0)
  }

  override def close(): Unit = {
    rows.close()
    stager.close()
    spool.close()
  }
}
