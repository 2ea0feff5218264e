package klog.staging

/** A task that stages what it gets: rows, or batches of other tasks. */
trait StagingTask[T] extends AutoCloseable {

  def add(item: T): Unit

  /** Puts what is left on the store; returns what the task has done. */
  def finish(): CommitMessage
}
