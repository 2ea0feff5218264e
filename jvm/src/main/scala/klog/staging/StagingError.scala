package klog.staging

import java.io.IOException
import java.nio.file.{AccessDeniedException, FileSystemException, NoSuchFileException}

import klog.store.StoreErrors

/** A write fails.
  *
  * @param pythonClass
  *   the class of the error that Python's engine raises, in `klog.errors`
  * @param sentence
  *   what is wrong, where, and what to do
  */
final class StagingError(val pythonClass: String, val sentence: String, cause: Throwable = null)
    extends RuntimeException(sentence, cause)

object StagingError {

  /** Returns why a file could not be read or written: for some errors Java's message is the path alone. */
  def reason(exc: IOException): String = exc match {
    case file: FileSystemException => Option(file.getReason).getOrElse(nameOf(file))
    case other => Option(other.getMessage).getOrElse(nameOf(other)).linesIterator.nextOption().getOrElse("")
  }

  private def nameOf(exc: IOException): String = exc match {
    case _: AccessDeniedException => "permission denied"
    case _: NoSuchFileException => "there is no such directory"
    case other => other.getClass.getSimpleName
  }

  /** A row or this machine's disk is why the write fails. */
  def failed(sentence: String, cause: Throwable = null): StagingError =
    new StagingError("KlogError", sentence, cause)

  /** A store is why the write fails: it did not answer, or refused. */
  def ofStore(sentence: String, cause: Throwable): StagingError =
    new StagingError(StoreErrors.pythonClass(cause), sentence, cause)
}
