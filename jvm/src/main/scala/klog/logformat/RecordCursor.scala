package klog.logformat

import java.nio.ByteBuffer
import java.nio.charset.{CharacterCodingException, StandardCharsets}

/** Steps through the records of a batch v2, uncompressed in an array.
  *
  * {{{
  * record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
  *          | key length varint, key | value length varint, value
  *          | header count varint | headers                            (docs/format.md, 3)
  * }}}
  *
  * The rule: every length is checked against its record before it is used, a record must end where its
  * length says, and the records fill the batch exactly. Offsets rise, and stay within what the header
  * says.
  */
final class RecordCursor extends RowSource {
  private var data: Array[Byte] = Array.emptyByteArray
  private var at = 0
  private var end = 0
  private var remaining = 0
  private var batchPosition = 0L
  private var baseOffset = 0L
  private var lastOffsetDelta = 0
  private var previousDelta = -1
  private var baseTimestampMs = 0L
  private var appendTimeMs = 0L
  private var hasAppendTime = false

  /** Starts at the first record.
    *
    * @param data
    *   the array that the records lie in, from `start` to `end`
    * @param position
    *   the position of the batch in its file, for errors
    */
  def open(header: BatchHeader, data: Array[Byte], start: Int, end: Int, position: Long): Unit = {
    RecordCursor.checkCount(header, end - start, position)
    this.data = data
    this.end = end
    at = start
    remaining = header.count
    batchPosition = position
    baseOffset = header.baseOffset
    lastOffsetDelta = header.lastOffsetDelta
    previousDelta = -1
    baseTimestampMs = header.baseTimestampMs
    appendTimeMs = header.maxTimestampMs
    hasAppendTime = header.hasLogAppendTime
  }

  override def hasMore: Boolean = remaining > 0

  override def fill(rows: RecordRows, startOffset: Long, endOffset: Long): Unit = {
    rows.data = data
    try {
      while (remaining > 0 && !rows.isFull) addRecord(rows, startOffset, endOffset)
    } catch {
      case _: ArrayIndexOutOfBoundsException => throw damage("a record reaches past its batch")
      case exc: CorruptRecordError => throw new CorruptRecordError(exc.reason, batchPosition, exc)
    }
    if (remaining == 0 && at != end) throw damage("the records do not fill their batch")
  }

  private def addRecord(rows: RecordRows, startOffset: Long, endOffset: Long): Unit = {
    val wanted = rows.wanted
    val length = Varint.read(data, at)
    val bodyStart = Varint.end(length)
    val recordEnd = bodyStart + Varint.value(length)
    if (recordEnd <= bodyStart || recordEnd > end) throw damage("the records do not fill their batch")
    val timestampDelta = Varint.varlong(data, bodyStart + 1)
    val offsetDelta = Varint.read(data, Varint.varlongEnd(data, bodyStart + 1))
    val key = Varint.read(data, Varint.end(offsetDelta))
    val keyStart = Varint.end(key)
    val keyEnd = fieldEnd(keyStart, Varint.value(key), recordEnd, "key")
    val value = Varint.read(data, keyEnd)
    val valueStart = Varint.end(value)
    val valueEnd = fieldEnd(valueStart, Varint.value(value), recordEnd, "value")
    val headerCount = Varint.read(data, valueEnd)
    checkHeaderCount(Varint.value(headerCount), Varint.end(headerCount), recordEnd)
    checkDelta(Varint.value(offsetDelta))
    val firstHeader = rows.headers.count
    if (wanted.headers) {
      addHeaders(rows.headers, Varint.value(headerCount), Varint.end(headerCount), recordEnd)
    }
    val offset = baseOffset + Varint.value(offsetDelta)
    if (offset >= startOffset && offset < endOffset) {
      val row = rows.count
      if (wanted.offset) rows.offsets(row) = offset
      if (wanted.timestamp) {
        val timestampMs = if (hasAppendTime) appendTimeMs else baseTimestampMs + timestampDelta
        rows.timestampsUs(row) = RecordRows.micros(timestampMs)
      }
      if (wanted.timestampType) rows.timestampTypes(row) = if (hasAppendTime) 1 else 0
      if (wanted.key) rows.keys.set(row, keyStart, Varint.value(key))
      if (wanted.value) rows.values.set(row, valueStart, Varint.value(value))
      if (wanted.headers) {
        rows.firstHeaders(row) = firstHeader
        rows.headerCounts(row) = Varint.value(headerCount)
      }
      rows.count = row + 1
    } else {
      rows.headers.count = firstHeader
    }
    at = recordEnd
    remaining -= 1
  }

  /** Returns where a field of a length ends; a negative length is null. */
  private def fieldEnd(start: Int, length: Int, recordEnd: Int, name: String): Int = {
    // The length is compared with what is left, as a sum could overflow. A byte has to follow.
    if (length >= recordEnd - start) throw damage(s"$name of $length bytes reaches past its record")
    if (start >= recordEnd) throw damage(s"$name reaches past its record")
    if (length < 0) start else start + length
  }

  private def checkHeaderCount(count: Int, start: Int, recordEnd: Int): Unit = {
    val left = recordEnd - start
    if (count < 0 || 2L * count > left || left < 0 || (count == 0 && left != 0)) {
      throw damage(s"$count headers in $left bytes")
    }
  }

  private def checkDelta(delta: Int): Unit = {
    if (delta <= previousDelta || delta > lastOffsetDelta) {
      throw damage(s"record offset ${baseOffset + delta} does not fit its batch")
    }
    previousDelta = delta
  }

  private def addHeaders(headers: HeaderFields, count: Int, start: Int, recordEnd: Int): Unit = {
    if (count > BatchLimits.MaxRecordHeaders) {
      throw damage(s"more than ${BatchLimits.MaxRecordHeaders} headers on a record are refused")
    }
    var position = start
    var number = 0
    while (number < count) {
      val key = Varint.read(data, position)
      val keyStart = Varint.end(key)
      val keyLength = Varint.value(key)
      if (keyLength < 0) throw damage("a header without a key")
      if (keyLength >= recordEnd - keyStart) throw damage("a header key reaches past its record")
      checkUtf8(keyStart, keyLength)
      val value = Varint.read(data, keyStart + keyLength)
      val valueStart = Varint.end(value)
      val valueLength = math.max(Varint.value(value), -1)
      if (valueStart > recordEnd || valueLength > recordEnd - valueStart) {
        throw damage("a header value reaches past its record")
      }
      headers.add(keyStart, keyLength, valueStart, valueLength)
      position = valueStart + math.max(valueLength, 0)
      number += 1
    }
    if (position != recordEnd) throw damage("bytes follow the last header")
  }

  private def checkUtf8(start: Int, length: Int): Unit = {
    var index = start
    while (index < start + length && data(index) >= 0) index += 1
    if (index < start + length) {
      try StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data, start, length))
      catch {
        case exc: CharacterCodingException =>
          throw new CorruptRecordError("a header key is not UTF-8", batchPosition, exc)
      }
    }
  }

  private def damage(reason: String) = new CorruptRecordError(reason, batchPosition)
}

object RecordCursor {
  private val MinRecordBytes = 7

  /** Refuses a batch that counts more records than its bytes hold, or than a reader takes. */
  def checkCount(header: BatchHeader, sectionBytes: Int, position: Long): Unit = {
    if (header.count > BatchLimits.MaxBatchRecords) {
      val limit = BatchLimits.MaxBatchRecords
      val reason = s"a batch of ${header.count} records is refused, the limit is $limit"
      throw new CorruptRecordError(reason, position)
    }
    if (header.count.toLong * MinRecordBytes > sectionBytes) {
      throw new CorruptRecordError(s"${header.count} records in $sectionBytes bytes", position)
    }
  }
}
