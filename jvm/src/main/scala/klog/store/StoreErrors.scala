package klog.store

import java.nio.file.{AccessDeniedException, FileSystemException, NoSuchFileException}

/** Whether a store has refused a request, or did not answer: Python has a class for each. */
object StoreErrors {

  /** What a disk says until somebody changes something, in words of the C library. */
  private val Refusals =
    Set(
      "Permission denied",
      "Operation not permitted",
      "No space left on device",
      "Disk quota exceeded",
      "Read-only file system",
      "File name too long",
      "Too many levels of symbolic links"
    )

  /** What Hadoop's clients raise for an answer that says no, by its name: not all of them are on the class path. */
  private val RefusalNames =
    Set(
      "AccessControlException",
      "NSQuotaExceededException",
      "DSQuotaExceededException",
      "QuotaExceededException",
      "QuotaByStorageTypeExceededException",
      "UnknownStoreException",
      "AWSRedirectException",
      "AWSBadRequestException",
      "NoAuthWithAWSException"
    )

  /** Returns the class in `klog.errors` for an error of a store. */
  def pythonClass(error: Throwable): String =
    if (Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(MaxCauses).exists(isRefusal))
      "StoreRefusedError"
    else "StoreError"

  private val MaxCauses = 20

  private def isRefusal(error: Throwable): Boolean = error match {
    case _: AccessDeniedException | _: NoSuchFileException => true
    case file: FileSystemException if file.getReason != null => Refusals.exists(file.getReason.contains)
    case _ =>
      RefusalNames(error.getClass.getSimpleName) ||
      Option(error.getMessage).exists(message => Refusals.exists(message.contains))
  }
}
