package klog.staging

import klog.logformat.{OpenBatch, RecordFields}

/** Cuts the records of one partition into batches (docs/write-plan.md, Batches).
  *
  * The rule: a batch is cut when the next record does not fit. What is left then, at the end or when memory
  * is short, is a batch too; if it `isPackedLater`, it is not compressed, and the task that gets it cuts its
  * records again.
  *
  * @param whenCut
  *   called with each batch, in order
  */
final class BatchCutter(
    settings: StagingSettings,
    encoder: BatchEncoder,
    isPackedLater: Boolean,
    whenCut: EncodedBatch => Unit
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

  /** Takes a batch of another task: unchanged after the records before it, or its records. */
  def add(batch: EncodedBatch): Unit =
    if (!batch.isWhole) batch.addTo(records, cut)
    else {
      flush()
      whenCut(batch)
    }

  /** Cuts the records that wait, also if they are too few for a batch, and frees their memory. */
  def flush(): Unit = {
    if (!records.isEmpty) {
      if (isPackedLater) whenCut(encoder.unpacked(records)) else cut(records)
    }
    records.release()
  }

  /** Encodes a batch; if compression makes it too large, its records become smaller ones. */
  private def cut(records: OpenBatch): Unit = {
    val batch = encoder.encode(records)
    if (batch.data.length > settings.maxBatchBytes && records.count > 1) records.split(cut)
    else whenCut(batch)
  }
}
