package klog.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import klog.slice.ReadCounts

final class BytesReadMetric extends SumMetric("klogBytesRead", "bytes read")
final class RequestsMetric extends SumMetric("klogRequests", "read requests")
final class RecordsMetric extends SumMetric("klogRecords", "records decoded")
final class BatchesReadMetric extends SumMetric("klogBatchesRead", "batches read")
final class BatchesSkippedMetric extends SumMetric("klogBatchesSkipped", "batches skipped")
final class HeaderBatchesMetric extends SumMetric("klogHeaderBatches", "batches read by their headers")
final class CrcTimeMetric extends TimeMetric("klogCrcTime", "time in CRC")
final class InflateTimeMetric extends TimeMetric("klogDecompressionTime", "time in decompression")
final class DecodeTimeMetric extends TimeMetric("klogDecodingTime", "time in decoding")
final class FallBacksMetric extends SumMetric("klogFallBacks", "scans that fell back to Python")

/** What Spark's UI shows of a scan. */
object ReadMetrics {
  private val FallBacks = new FallBacksMetric
  val ofTasks: Metrics[ReadCounts] = new Metrics(
    new BytesReadMetric -> (_.bytesRead),
    new RequestsMetric -> (_.requests),
    new RecordsMetric -> (_.records),
    new BatchesReadMetric -> (_.batchesRead),
    new BatchesSkippedMetric -> (_.batchesSkipped),
    new HeaderBatchesMetric -> (_.batchesNotInflated),
    new CrcTimeMetric -> (_.crcNanos),
    new InflateTimeMetric -> (_.inflateNanos),
    new DecodeTimeMetric -> (_.decodeNanos)
  )

  val all: Array[CustomMetric] = FallBacks +: ofTasks.all

  /** Returns what the driver reports of a scan. */
  def driverValues(fellBack: Boolean): Array[CustomTaskMetric] =
    Array(MetricValue(FallBacks.name, if (fellBack) 1 else 0))
}
