package klog.staging

import java.io.IOException

import scala.util.control.NonFatal

import klog.store.{NewFile, WritableSegmentStore}

/** The files that a task writes under a root: the time they take is counted, and errors name them.
  *
  * @param root
  *   as the store spells it
  */
final class StagedFiles(store: WritableSegmentStore, root: String) {

  /** What the task has written so far. */
  val counts: WriteCounts = new WriteCounts

  /** Begins a file; it is there when the first bytes are written. */
  def create(file: String): StagedFile = new StagedFile(store, s"$root/$file", counts)

  /** Writes a whole file. */
  def put(file: String, bytes: Array[Byte]): Unit = {
    val staged = create(file)
    try {
      staged.write(bytes)
      staged.complete()
    } finally staged.close()
  }
}

/** A file that a task writes. */
final class StagedFile(store: WritableSegmentStore, path: String, counts: WriteCounts) extends AutoCloseable {
  private var file: Option[NewFile] = None
  private var failure: Option[Throwable] = None

  def write(bytes: Array[Byte]): Unit = timed(opened.write(bytes))

  /** Gives the file its name. */
  def complete(): Unit = timed {
    opened.complete()
    file = None
  }

  /** Removes the file if it is not complete. If that fails, too, the error before is the one to show. */
  override def close(): Unit = {
    try file.foreach(_.close())
    catch { case NonFatal(exc) => failure.foreach(_.addSuppressed(exc)) }
    file = None
  }

  private def opened: NewFile = file.getOrElse {
    file = Some(store.create(path))
    file.get
  }

  private def timed(work: => Unit): Unit = {
    val started = System.nanoTime()
    try work
    catch {
      case exc: IOException =>
        val error = StagingError.ofStore(
          s"$path: not written: ${StagingError.reason(exc)}. Check the path, and that there is room and access",
          exc
        )
        failure = Some(error)
        throw error
    } finally counts.storeNanos += System.nanoTime() - started
  }
}
