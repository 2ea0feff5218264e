package klog.staging

import klog.logformat.RecordFields

/** A row of a write. One object is used for all rows of a task. */
final class RowToWrite {

  /** Its key, value and headers; its timestamp is set when the row is checked. */
  val fields: RecordFields = new RecordFields

  /** The topic that the row names; null if it names none. */
  var topic: String = null

  var hasPartition: Boolean = false
  var partition: Long = 0

  var hasTimestamp: Boolean = false
  var timestampMs: Long = 0
}
