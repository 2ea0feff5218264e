package klog.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

import klog.slice.ReadCounts

/** What Spark's UI shows of a scan. Spark makes each metric by its class name, without arguments. */
sealed abstract class ReadMetric(override val name: String, override val description: String)
    extends CustomSumMetric

/** A time in nanoseconds, shown in milliseconds. */
sealed abstract class TimeMetric(name: String, description: String) extends ReadMetric(name, description) {
  override def aggregateTaskMetrics(taskMetrics: Array[Long]): String = s"${taskMetrics.sum / 1000000} ms"
}

final class BytesReadMetric extends ReadMetric("klogBytesRead", "bytes read")
final class RequestsMetric extends ReadMetric("klogRequests", "read requests")
final class RecordsMetric extends ReadMetric("klogRecords", "records decoded")
final class BatchesReadMetric extends ReadMetric("klogBatchesRead", "batches read")
final class BatchesSkippedMetric extends ReadMetric("klogBatchesSkipped", "batches skipped")
final class HeaderBatchesMetric extends ReadMetric("klogHeaderBatches", "batches read by their headers")
final class CrcTimeMetric extends TimeMetric("klogCrcTime", "time in CRC")
final class InflateTimeMetric extends TimeMetric("klogDecompressionTime", "time in decompression")
final class DecodeTimeMetric extends TimeMetric("klogDecodingTime", "time in decoding")
final class FallBacksMetric extends ReadMetric("klogFallBacks", "scans that fell back to Python")

/** A value of a metric. */
final case class MetricValue(override val name: String, override val value: Long) extends CustomTaskMetric

object ReadMetrics {
  private val FallBacks = new FallBacksMetric
  private val ofTasks: Seq[(CustomMetric, ReadCounts => Long)] = Seq(
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

  val all: Array[CustomMetric] = (FallBacks +: ofTasks.map(_._1)).toArray

  /** Returns what a task reports. */
  def values(counts: ReadCounts): Array[CustomTaskMetric] =
    ofTasks.map { case (metric, value) => MetricValue(metric.name, value(counts)) }.toArray

  /** Returns what the driver reports of a scan. */
  def driverValues(fellBack: Boolean): Array[CustomTaskMetric] =
    Array(MetricValue(FallBacks.name, if (fellBack) 1 else 0))
}
