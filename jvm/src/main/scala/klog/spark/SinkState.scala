package klog.spark

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.store.SegmentStores

/** What the writes of one table have in common: Spark makes a new one for each micro-batch of a stream. */
final class SinkState {

  /** What the last micro-batch has written. */
  val progress: SinkProgress = new SinkProgress
  private var stores: Option[(Any, TaskStores)] = None

  /** Returns the stores of the tasks. They share one broadcast as long as the settings are the same. */
  def storesOf(options: CaseInsensitiveStringMap): TaskStores = synchronized {
    val scheme = SegmentStores.scheme(options.getOrDefault("path", ""))
    val settings = (options, TaskStores.configurationOf(scheme))
    stores.collect { case (same, known) if same == settings => known }.getOrElse {
      val made = TaskStores.of(Seq(scheme), options)
      stores = Some((settings, made))
      made
    }
  }
}
