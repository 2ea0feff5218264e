package klog.slice

/** What the reading of a task has cost so far. Times are nanoseconds. */
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
}
