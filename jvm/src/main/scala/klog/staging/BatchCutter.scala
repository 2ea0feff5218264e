package klog.staging

import klog.logformat.{OpenBatch, RecordFields}

/** Cuts the records of one partition into batches (docs/write-plan.md, Batches).
  *
  * The rule: a batch ends when the next record does not fit. The records that wait at the end, or when memory
  * is short, become a batch too. It is partial if another task packs it again, unless it is half full: to
  * pack it would take longer than it saves.
  *
  * @param leavesPartial
  *   whether another task packs partial batches again
  * @param output
  *   called with each batch, in order
  */
final class BatchCutter(
    settings: StagingSettings,
    encoder: BatchEncoder,
    leavesPartial: Boolean,
    output: EncodedBatch => Unit
) {
  private val records = new OpenBatch(settings.batchBytes)

  /** The memory of the records that are not in a batch yet. */
  def memoryBytes: Int = records.memoryBytes

  def add(record: RecordFields): Unit =
    if (!records.add(record)) {
      cut(records)
      records.clear()
      records.add(record)
    }

  /** Takes a batch of another task: a full one unchanged, of a partial one the records. */
  def add(batch: EncodedBatch): Unit =
    if (batch.isPartial) batch.addTo(records, cut)
    else {
      flush()
      output(batch)
    }

  /** Cuts the records that wait, also if they are too few for a batch, and frees their memory. */
  def flush(): Unit = {
    if (!records.isEmpty) {
      if (leavesPartial && records.end < settings.batchBytes / 2) output(encoder.encodePartial(records))
      else cut(records)
    }
    records.release()
  }

  /** Encodes a batch; if compression makes it too large, its records become smaller ones. */
  private def cut(records: OpenBatch): Unit = {
    val batch = encoder.encode(records)
    if (batch.data.length > settings.maxBatchBytes && records.count > 1) records.split(cut)
    else output(batch)
  }
}
