package klog.staging

import scala.collection.mutable.ArrayBuffer

/** The log of a segment that is being made: it takes batches, and is on the store when it is finished. */
trait SegmentLog extends AutoCloseable {
  def add(batch: Array[Byte]): Unit

  /** Puts what is not on the store yet there. */
  def finish(): Unit
}

/** Writes each batch when it comes, so the segment needs no memory: for segments that are made one by one. */
final class StreamedLog(file: StagedFile) extends SegmentLog {
  override def add(batch: Array[Byte]): Unit = file.write(batch)
  override def finish(): Unit = file.complete()
  override def close(): Unit = file.close()
}

/** Keeps the batches in a spool until the segment is finished: for segments that are made side by side. */
final class SpooledLog(file: StagedFile, spool: BatchSpool) extends SegmentLog {
  private val batches = ArrayBuffer.empty[SpooledBatch]

  override def add(batch: Array[Byte]): Unit = batches += spool.add(batch)

  override def finish(): Unit = {
    spool.take(batches.toSeq).foreach(file.write)
    file.complete()
  }

  override def close(): Unit = file.close()
}
