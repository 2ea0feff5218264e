package klog.store

import java.nio.file.{AccessDeniedException, FileSystemException}

/** Whether a store has refused a request, or did not answer: Python has a class for each. */
object StoreErrors {

  /** What a disk says until somebody changes something, in words of the C library. */
  private val Refusals =
    Set("Permission denied", "No space left on device", "Disk quota exceeded", "Read-only file system")

  /** Returns the class in `klog.errors` for an error of a store. */
  def pythonClass(error: Throwable): String =
    if (Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(MaxCauses).exists(isRefusal))
      "StoreRefusedError"
    else "StoreError"

  private val MaxCauses = 20

  private def isRefusal(error: Throwable): Boolean = error match {
    case _: AccessDeniedException => true
    case file: FileSystemException if file.getReason != null => Refusals.exists(file.getReason.contains)
    case _ =>
      val name = error.getClass.getSimpleName
      name == "AccessControlException" || name.contains("QuotaExceeded") ||
      Option(error.getMessage).exists(message => Refusals.exists(message.contains))
  }
}
