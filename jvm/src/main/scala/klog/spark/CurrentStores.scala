package klog.spark

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The stores of the tasks of a query whose micro-batches come one after the other.
  *
  * The rule: they share one broadcast as long as the options and Hadoop's configuration are the same. Keys that
  * were replaced go to the tasks of the next micro-batch.
  */
final class CurrentStores {
  private var last: Option[TaskStores] = None

  /** Returns the stores of roots of these schemes. */
  def of(schemes: Seq[String], options: CaseInsensitiveStringMap): TaskStores = synchronized {
    val stores = TaskStores.of(schemes, options, last)
    last = Some(stores)
    stores
  }
}
