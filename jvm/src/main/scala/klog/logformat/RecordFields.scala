package klog.logformat

import scala.collection.mutable.ArrayBuffer

/** Some bytes of an array; a length of -1 is null. */
final class ByteRange {
  var data: Array[Byte] = Array.emptyByteArray
  var start: Int = 0
  var length: Int = -1

  def isNull: Boolean = length < 0

  /** The bytes; 0 for null. */
  def sizeBytes: Int = math.max(length, 0)

  def set(data: Array[Byte], start: Int, length: Int): Unit = {
    this.data = data
    this.start = start
    this.length = length
  }

  def set(data: Array[Byte]): Unit = set(data, 0, data.length)

  def setNull(): Unit = set(Array.emptyByteArray, 0, -1)

  def copyTo(target: Array[Byte], at: Int): Unit =
    if (length > 0) System.arraycopy(data, start, target, at, length)
}

/** What a record to write has. One is used for all rows of a task, and points at their bytes. */
final class RecordFields {
  val key: ByteRange = new ByteRange
  val value: ByteRange = new ByteRange
  val headers: HeaderRanges = new HeaderRanges
  var timestampMs: Long = 0
}

/** The headers of a record, in their order. */
final class HeaderRanges {
  var count: Int = 0
  private val allKeys = ArrayBuffer.empty[ByteRange]
  private val allValues = ArrayBuffer.empty[ByteRange]

  /** Adds a header, whose key and value the caller sets. */
  def add(): Int = {
    if (count == allKeys.length) {
      allKeys += new ByteRange
      allValues += new ByteRange
    }
    count += 1
    count - 1
  }

  def key(number: Int): ByteRange = allKeys(number)

  def value(number: Int): ByteRange = allValues(number)
}
