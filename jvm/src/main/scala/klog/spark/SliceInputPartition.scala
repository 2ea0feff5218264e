package klog.spark

import org.apache.spark.sql.connector.read.InputPartition

/** A task of a scan: slices, pickled by Python. */
final case class SliceInputPartition(pickledTask: Array[Byte]) extends InputPartition
