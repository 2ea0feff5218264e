package klog.spark

import klog.staging.WriteCounts

final class RecordsWrittenMetric extends SumMetric("klogRecordsWritten", "records written")
final class BatchesWrittenMetric extends SumMetric("klogBatchesWritten", "batches written")
final class PlainBytesMetric extends SumMetric("klogPlainBytes", "bytes before compression")
final class BytesWrittenMetric extends SumMetric("klogBytesWritten", "bytes written")
final class FilesWrittenMetric extends SumMetric("klogFilesWritten", "segments written")
final class DeadLettersMetric extends SumMetric("klogDeadLetters", "dead letters")
final class CompressTimeMetric extends TimeMetric("klogCompressionTime", "time in compression")
final class StoreTimeMetric extends TimeMetric("klogStoreTime", "time in the store")

/** What Spark's UI and the progress of a stream show of a write. */
object WriteMetrics {
  val ofBatches: Metrics[WriteCounts] = new Metrics(
    new RecordsWrittenMetric -> (_.records),
    new BatchesWrittenMetric -> (_.batches),
    new PlainBytesMetric -> (_.plainBytes),
    new BytesWrittenMetric -> (_.bytes),
    new FilesWrittenMetric -> (_.files),
    new DeadLettersMetric -> (_.deadLetters),
    new CompressTimeMetric -> (_.compressNanos),
    new StoreTimeMetric -> (_.storeNanos)
  )

  /** Returns the metrics of a micro-batch in a stream's progress (`sink.metrics`). */
  def progress(counts: WriteCounts): Map[String, String] = Map(
    "records" -> counts.records,
    "batches" -> counts.batches,
    "bytesBeforeCompression" -> counts.plainBytes,
    "bytes" -> counts.bytes,
    "files" -> counts.files,
    "deadLetters" -> counts.deadLetters,
    "compressionTimeMs" -> counts.compressNanos / NanosPerMs,
    "storeTimeMs" -> counts.storeNanos / NanosPerMs
  ).map { case (name, value) => name -> value.toString }

  private val NanosPerMs = 1000000L
}
