package klog.slice

import klog.store.SegmentFile

/** What the reading of a task has cost so far. Times are nanoseconds.
  *
  * The rule: all that a task reads of a store is read by [[read]], also of indexes and of a topic's metadata.
  */
final class ReadCounts {
  var bytesRead: Long = 0

  /** Requests of the store that read bytes. */
  var requests: Long = 0

  var batchesRead: Long = 0

  /** Batches without wanted records. */
  var batchesSkipped: Long = 0

  /** Batches whose header was enough. */
  var batchesNotInflated: Long = 0
  var records: Long = 0
  var crcNanos: Long = 0
  var inflateNanos: Long = 0
  var decodeNanos: Long = 0

  /** Reads bytes of a file, and counts them and the requests: see `SegmentFile.read`. */
  def read(file: SegmentFile, position: Long, into: Array[Byte], at: Int, size: Int): Int = {
    val before = file.requests
    val read = file.read(position, into, at, size)
    bytesRead += read
    requests += file.requests - before
    read
  }
}
