package klog.logformat

/** What a reader takes at most. The rule: bytes from a log are hostile, so each size and count has a
  * limit before memory is taken for it (docs/format.md, 17).
  */
object BatchLimits {
  val MaxBatchBytes: Int = 128 << 20
  val MaxBatchRecords: Int = 1 << 22
  val MaxRecordHeaders: Int = 1 << 16
  val MaxWrapperMessages: Int = 1 << 22

  /** The highest offset of a record: the next offset is a long, too. */
  val MaxOffset: Long = Long.MaxValue - 1
}
