package klog.logformat

/** Bytes of a log are damaged.
  *
  * @param reason
  *   what is wrong with them
  * @param position
  *   the position of the damage, in bytes: in the file, or where its thrower says
  */
final class CorruptRecordError(val reason: String, val position: Long, cause: Throwable = null)
    extends RuntimeException(s"$reason, at position $position", cause)
