package klog.logformat

/** The records of one batch, given out a few at a time. */
trait RowSource {

  /** Whether there are records that were not given out. */
  def hasMore: Boolean

  /** Adds records with offsets in a range to rows, until the rows are full or the batch ends. Records
    * outside the range are passed over.
    *
    * @param startOffset
    *   the first offset wanted, as the file has it
    * @param endOffset
    *   the offset after the last one wanted, as the file has it
    */
  def fill(rows: RecordRows, startOffset: Long, endOffset: Long): Unit
}
