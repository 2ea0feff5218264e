package klog.logformat

import java.util.{Arrays => JavaArrays}

/** The columns of some records: at most [[capacity]] rows, used again for the next ones.
  *
  * Keys, values and headers are not copied: a row has where they lie in [[data]], so all rows are of
  * one array. A length of -1 is null. Headers lie side by side in arrays of their own; a row has the
  * number of its first one, and how many it has.
  */
final class RecordRows(val wanted: WantedColumns) {
  val capacity: Int = if (wanted.isNone) RecordRows.MaxCountedRows else RecordRows.MaxRows
  private val arrayRows = if (wanted.isNone) 0 else capacity

  var data: Array[Byte] = RecordRows.NoBytes
  var count: Int = 0
  val offsets: Array[Long] = new Array(if (wanted.offset) arrayRows else 0)
  val timestampsUs: Array[Long] = new Array(if (wanted.timestamp) arrayRows else 0)
  val timestampTypes: Array[Int] = new Array(if (wanted.timestampType) arrayRows else 0)
  val keys: FieldPositions = new FieldPositions(if (wanted.key) arrayRows else 0)
  val values: FieldPositions = new FieldPositions(if (wanted.value) arrayRows else 0)
  val firstHeaders: Array[Int] = new Array(if (wanted.headers) arrayRows else 0)
  val headerCounts: Array[Int] = new Array(if (wanted.headers) arrayRows else 0)
  val headers: HeaderFields = new HeaderFields

  def isFull: Boolean = count >= capacity || headers.count >= RecordRows.MaxRows

  def isEmpty: Boolean = count == 0

  def clear(): Unit = {
    count = 0
    headers.count = 0
  }

  /** Returns whether rows whose fields lie in an array can be added to those that are here. */
  def takes(other: Array[Byte]): Boolean = isEmpty || !wanted.needsRecords || (data eq other)

  /** Returns whether a row has its fields in an array, which must not change meanwhile. */
  def pointInto(other: Array[Byte]): Boolean = !isEmpty && wanted.needsRecords && (data eq other)
}

/** Where the fields of a column lie: their starts and lengths in the data of the rows. */
final class FieldPositions(rows: Int) {
  var starts: Array[Int] = new Array(rows)

  /** A length of -1 is null. */
  var lengths: Array[Int] = new Array(rows)

  def set(row: Int, start: Int, length: Int): Unit = {
    starts(row) = start
    lengths(row) = length
  }

  /** Makes room for twice as many. */
  def grow(): Unit = {
    starts = JavaArrays.copyOf(starts, 2 * starts.length)
    lengths = JavaArrays.copyOf(lengths, 2 * lengths.length)
  }
}

/** Where the headers of records lie, one after the other. */
final class HeaderFields {
  var count: Int = 0
  val keys: FieldPositions = new FieldPositions(16)
  val values: FieldPositions = new FieldPositions(16)

  /** Takes a header; a value of length -1 is null. */
  def add(keyStart: Int, keyLength: Int, valueStart: Int, valueLength: Int): Unit = {
    if (count == keys.starts.length) {
      keys.grow()
      values.grow()
    }
    keys.set(count, keyStart, keyLength)
    values.set(count, valueStart, valueLength)
    count += 1
  }
}

object RecordRows {

  /** Rows of one columnar batch: enough to make a call for each of them cheap, few enough to stay in
    * the processor's caches.
    */
  val MaxRows: Int = 4096

  /** Rows without columns are only counted. */
  val MaxCountedRows: Int = 1 << 30
  private val NoBytes = Array.emptyByteArray

  /** The latest time, and its negative the earliest, that a timestamp in microseconds can hold. */
  val MaxTimestampMs: Long = Long.MaxValue / 1000 - 1

  /** Returns Kafka's milliseconds as microseconds; beyond them the nearest time that there is. */
  def micros(timestampMs: Long): Long =
    math.max(-MaxTimestampMs, math.min(timestampMs, MaxTimestampMs)) * 1000
}

/** Which columns are decoded. Those of the topic and the partition are the same in all rows. */
final case class WantedColumns(
    key: Boolean,
    value: Boolean,
    offset: Boolean,
    timestamp: Boolean,
    timestampType: Boolean,
    headers: Boolean
) {
  def isNone: Boolean = !key && !value && !offset && !timestamp && !timestampType && !headers

  /** Whether only reading the records shows a column. */
  def needsRecords: Boolean = key || value || headers
}

object WantedColumns {

  /** Returns what has to be decoded for columns of klog's schema. */
  def of(names: Seq[String]): WantedColumns = WantedColumns(
    key = names.contains("key"),
    value = names.contains("value"),
    offset = names.contains("offset"),
    timestamp = names.contains("timestamp"),
    timestampType = names.contains("timestampType"),
    headers = names.contains("headers")
  )
}
