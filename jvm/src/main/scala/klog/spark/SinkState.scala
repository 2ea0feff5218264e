package klog.spark

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.store.SegmentStores

/** What the writes of one table have in common: Spark makes a new one for each micro-batch of a stream. */
final class SinkState {

  /** What the last micro-batch has written. */
  val progress: SinkProgress = new SinkProgress
  private val stores = new CurrentStores

  /** Returns the stores of the tasks. */
  def storesOf(options: CaseInsensitiveStringMap): TaskStores =
    stores.of(Seq(SegmentStores.scheme(options.getOrDefault("path", ""))), options)
}
