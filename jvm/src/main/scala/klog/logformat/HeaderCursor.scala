package klog.logformat

/** Gives out records as far as the header of their batch says them: it is not decompressed.
  *
  * The rule (docs/format.md, 2): a header says how many records a batch has, and the type of their
  * timestamps. It says their offsets if no compaction has removed one: then there are as many records
  * as offsets. It says their timestamps with LogAppendTime, which they all have, and those of a batch
  * of one record, whose first and largest timestamp are the same.
  */
final class HeaderCursor extends RowSource {
  private var remaining = 0
  private var offset = 0L
  private var timestampUs = 0L
  private var timestampType = 0

  /** Starts at the first record of a batch whose header is enough.
    *
    * @throws CorruptRecordError
    *   if the header counts more records than a reader takes
    */
  def open(header: BatchHeader, position: Long): Unit = {
    val room = if (header.codec == 0) header.sizeBytes - BatchHeader.HeaderBytes else Int.MaxValue
    RecordCursor.checkCount(header, room, position)
    remaining = header.count
    offset = header.nextOffset - header.count
    timestampUs = RecordRows.micros(header.maxTimestampMs)
    timestampType = if (header.hasLogAppendTime) 1 else 0
  }

  override def hasMore: Boolean = remaining > 0

  override def fill(rows: RecordRows, startOffset: Long, endOffset: Long): Unit = {
    val wanted = rows.wanted
    // Of a batch with gaps only the number of its records is asked for, and all of them are wanted.
    val skipped = math.min(math.max(startOffset - offset, 0L), remaining.toLong).toInt
    offset += skipped
    remaining -= skipped
    val left = math.min(remaining.toLong, math.max(endOffset - offset, 0L))
    val taken = math.min(left, (rows.capacity - rows.count).toLong).toInt
    val end = rows.count + taken
    if (!wanted.isNone) {
      var row = rows.count
      while (row < end) {
        if (wanted.offset) rows.offsets(row) = offset + row - rows.count
        if (wanted.timestamp) rows.timestampsUs(row) = timestampUs
        if (wanted.timestampType) rows.timestampTypes(row) = timestampType
        row += 1
      }
    }
    rows.count = end
    offset += taken
    remaining = if (taken == left) 0 else remaining - taken
  }
}

object HeaderCursor {

  /** Returns whether the header of a batch says the wanted columns of all its records.
    *
    * @param isWhollyWanted
    *   whether no record of the batch lies outside the wanted offsets
    */
  def isEnough(header: BatchHeader, wanted: WantedColumns, isWhollyWanted: Boolean): Boolean =
    !header.isLegacy && !wanted.needsRecords &&
      (!wanted.offset && isWhollyWanted || header.count == header.lastOffsetDelta + 1L) &&
      (!wanted.timestamp || header.hasLogAppendTime || isSingle(header))

  private def isSingle(header: BatchHeader): Boolean =
    header.count == 1 && !header.hasDeleteHorizon && header.baseTimestampMs == header.maxTimestampMs
}
