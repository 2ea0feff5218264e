package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{HasPartitionKey, InputPartition}

/** A task of a scan: slices, pickled by Python. */
sealed class SliceInputPartition(val pickledTask: Array[Byte]) extends InputPartition

/** A task whose slices are all of one partition number: Spark groups and joins by it without a shuffle. */
final class KeyedInputPartition(pickledTask: Array[Byte], partition: Int)
    extends SliceInputPartition(pickledTask)
    with HasPartitionKey {
  override def partitionKey(): InternalRow = InternalRow(partition)
}
