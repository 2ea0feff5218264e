package klog.logformat

import java.util.{Arrays => JavaArrays}

/** The records of a batch v2 that is being made: uncompressed, after room for the header.
  *
  * {{{
  * record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
  *          | key length varint, key | value length varint, value
  *          | header count varint | headers                            (docs/format.md, 3)
  * }}}
  *
  * The rule: a batch takes records until the next one would make it larger than `maxBytes`, header
  * included; a record that is larger is a batch of its own. Offsets count on without gaps.
  */
final class OpenBatch(maxBytes: Int) {
  import OpenBatch._

  private var array = Array.emptyByteArray
  private var used = BatchHeader.HeaderBytes

  var count: Int = 0
  var baseTimestampMs: Long = 0
  var minTimestampMs: Long = 0
  var maxTimestampMs: Long = 0

  /** The records lie in it from [[BatchHeader.HeaderBytes]] to [[end]]. */
  def data: Array[Byte] = array

  def end: Int = used

  def isEmpty: Boolean = count == 0

  /** What the batch takes in memory. */
  def memoryBytes: Int = array.length

  /** Adds a record; false if there is no room for it. */
  def add(record: RecordFields): Boolean = {
    val isAdded = open(record.timestampMs, contentBytes(record))
    if (isAdded) {
      used = writeField(record.key, used)
      used = writeField(record.value, used)
      used = writeHeaders(record.headers, used)
    }
    isAdded
  }

  /** Removes all records, and keeps the memory for the next ones. */
  def clear(): Unit = {
    count = 0
    used = BatchHeader.HeaderBytes
  }

  /** Removes all records, and their memory. */
  def release(): Unit = {
    clear()
    array = Array.emptyByteArray
  }

  /** Hands all records over to smaller batches, whose `maxBytes` is half as large.
    *
    * @param whenFull
    *   called for each of them; they are one object, which is emptied afterwards
    */
  def split(whenFull: OpenBatch => Unit): Unit = {
    val half = new OpenBatch(maxBytes / 2)
    half.addAll(array, used, baseTimestampMs, whenFull)
    if (!half.isEmpty) whenFull(half)
  }

  /** Adds the records of a batch that is not compressed.
    *
    * @param batch
    *   has the records from [[BatchHeader.HeaderBytes]] to `end`
    * @param whenFull
    *   called with this batch when the next record does not fit; it is emptied afterwards
    */
  def addAll(batch: Array[Byte], end: Int, baseTimestampMs: Long, whenFull: OpenBatch => Unit): Unit = {
    var position = BatchHeader.HeaderBytes
    while (position < end) {
      val length = Varint.read(batch, position)
      val body = Varint.end(length)
      val recordEnd = body + Varint.value(length)
      val timestampMs = baseTimestampMs + Varint.varlong(batch, body + 1)
      val content = Varint.end(Varint.read(batch, Varint.varlongEnd(batch, body + 1)))
      if (!addContent(timestampMs, batch, content, recordEnd - content)) {
        whenFull(this)
        clear()
        addContent(timestampMs, batch, content, recordEnd - content)
      }
      position = recordEnd
    }
  }

  /** Adds a record whose key, value and headers are encoded already. */
  private def addContent(timestampMs: Long, content: Array[Byte], start: Int, size: Int): Boolean = {
    val isAdded = open(timestampMs, size)
    if (isAdded) {
      System.arraycopy(content, start, array, used, size)
      used += size
    }
    isAdded
  }

  /** Writes a record up to its key, if there is room for it and for `contentBytes` that follow. */
  private def open(timestampMs: Long, contentBytes: Long): Boolean = {
    if (isEmpty) startAt(timestampMs)
    val timestampDelta = timestampMs - baseTimestampMs
    val bodyBytes = 1L + Varint.sizeOfLong(timestampDelta) + Varint.size(count) + contentBytes
    val recordEnd = used + Varint.size(math.min(bodyBytes, Int.MaxValue.toLong).toInt) + bodyBytes
    val hasRoom = isEmpty || (recordEnd <= maxBytes && count < BatchLimits.MaxBatchRecords)
    if (hasRoom) {
      reserve(recordEnd)
      used = Varint.write(array, used, bodyBytes.toInt)
      array(used) = 0
      used = Varint.writeLong(array, used + 1, timestampDelta)
      used = Varint.write(array, used, count)
      count += 1
      minTimestampMs = math.min(minTimestampMs, timestampMs)
      maxTimestampMs = math.max(maxTimestampMs, timestampMs)
    }
    hasRoom
  }

  private def startAt(timestampMs: Long): Unit = {
    baseTimestampMs = timestampMs
    minTimestampMs = timestampMs
    maxTimestampMs = timestampMs
  }

  private def reserve(end: Long): Unit =
    if (end > array.length) {
      if (end > BatchLimits.MaxBatchBytes) {
        throw new CorruptRecordError(
          s"a batch of $end bytes is refused, the limit is ${BatchLimits.MaxBatchBytes}",
          0
        )
      }
      val larger = math.max(FirstBytes.toLong, math.min(2L * array.length, math.max(maxBytes.toLong, end)))
      array = JavaArrays.copyOf(array, math.max(larger, end).toInt)
    }

  private def writeField(field: ByteRange, at: Int): Int = {
    val start = Varint.write(array, at, field.length)
    field.copyTo(array, start)
    start + field.sizeBytes
  }

  private def writeHeaders(headers: HeaderRanges, at: Int): Int = {
    var position = Varint.write(array, at, headers.count)
    var number = 0
    while (number < headers.count) {
      position = writeField(headers.key(number), position)
      position = writeField(headers.value(number), position)
      number += 1
    }
    position
  }
}

object OpenBatch {
  private val FirstBytes = 4096

  /** Returns the bytes of a record's key, value and headers in any batch. */
  def contentBytes(record: RecordFields): Long = {
    val headers = record.headers
    var size = fieldBytes(record.key) + fieldBytes(record.value) + Varint.size(headers.count)
    var number = 0
    while (number < headers.count) {
      size += fieldBytes(headers.key(number)) + fieldBytes(headers.value(number))
      number += 1
    }
    size
  }

  private def fieldBytes(field: ByteRange): Long = Varint.size(field.length).toLong + field.sizeBytes
}
