package klog.staging

/** What the writing of a task has cost so far. Times are nanoseconds. */
final class WriteCounts extends Serializable {
  var records: Long = 0
  var batches: Long = 0

  /** Bytes of batches with their headers, before and after compression. */
  var plainBytes: Long = 0
  var bytes: Long = 0
  var files: Long = 0
  var deadLetters: Long = 0
  var compressNanos: Long = 0
  var storeNanos: Long = 0

  def add(batch: EncodedBatch): Unit = {
    records += batch.recordCount
    batches += 1
    plainBytes += batch.plainBytes
    bytes += batch.data.length
    compressNanos += batch.compressNanos
  }

  def add(other: WriteCounts): Unit = {
    records += other.records
    batches += other.batches
    plainBytes += other.plainBytes
    bytes += other.bytes
    files += other.files
    deadLetters += other.deadLetters
    compressNanos += other.compressNanos
    storeNanos += other.storeNanos
  }
}
