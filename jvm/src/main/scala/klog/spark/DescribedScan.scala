package klog.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, Scan}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType

/** A scan with another description. */
final class DescribedScan(scan: Scan, override val description: String) extends Scan {
  override def readSchema(): StructType = scan.readSchema
  override def toBatch: Batch = scan.toBatch
  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = scan.toMicroBatchStream(checkpoint)
  override def supportedCustomMetrics(): Array[CustomMetric] = scan.supportedCustomMetrics
  override def reportDriverMetrics(): Array[CustomTaskMetric] = scan.reportDriverMetrics
  override def columnarSupportMode(): Scan.ColumnarSupportMode = scan.columnarSupportMode
}
