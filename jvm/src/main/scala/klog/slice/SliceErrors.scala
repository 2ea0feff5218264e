package klog.slice

import klog.store.StoreErrors

/** What is wrong with a slice, in the words of Python's error of the same name.
  *
  * @param sentence
  *   says what is wrong, and what to do
  */
sealed abstract class SliceError(val pythonClass: String, val sentence: String, cause: Throwable)
    extends RuntimeException(sentence, cause)

/** A file is damaged.
  *
  * @param position
  *   where in it, in bytes
  */
final class CorruptFileError(slice: Slice, position: Long, reason: String, cause: Throwable = null)
    extends SliceError(
      "CorruptFileError",
      s"${slice.name}: corrupt log ${slice.path} at position $position: $reason. Restore this segment from a " +
        "replica or a backup. A read leaves it out with startingOffsets and endingOffsets (`assign` reads the " +
        "other partitions)",
      cause
    )

/** The file that a commit names is missing. Whether the newest commit still names it only the planner knows. */
final class MissingFileError(slice: Slice, cause: Throwable)
    extends SliceError(
      "CorruptFileError",
      s"${slice.name}: corrupt log ${slice.path}: the file is missing or was replaced. If it was compacted, merged " +
        "or deleted after the query was planned, run it again with a new load(), or set " +
        """.option("engine", "python"), which plans such files again. Else restore this segment from a replica """ +
        "or a backup",
      cause
    )

/** The bytes under a slice are no longer those that were planned. A new plan has the new files: Python
  * makes it while it reads, this engine cannot.
  */
final class SliceChangedError(slice: Slice, reason: String, cause: Throwable = null)
    extends SliceError(
      "ChangedDuringReadError",
      s"${slice.name}: ${slice.path}: $reason. It was compacted, merged or deleted after the query was planned: " +
        """run it again with a new load(), or set .option("engine", "python"), which plans such files again""",
      cause
    )

/** The store does not let a file be read. */
final class SliceUnreadableError(slice: Slice, cause: Throwable)
    extends SliceError(
      StoreErrors.pythonClass(cause),
      s"${slice.name}: ${slice.path} cannot be read: $cause. Check that the executors can read it, or set " +
        """.option("engine", "python")""",
      cause
    )

/** A slice is of a format that this klog does not read, or lacks a field. */
final class UnsupportedFormatError(reason: String)
    extends SliceError(
      "UnsupportedFormatError",
      s"$reason. Use one version of klog on the driver and on all executors",
      null
    )
