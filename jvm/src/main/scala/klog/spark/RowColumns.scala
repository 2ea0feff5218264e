package klog.spark

import java.util.Locale

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import klog.logformat.ByteRange
import klog.staging.RowToWrite

/** Reads the columns of a write from Spark's rows. Python has checked their names and types.
  *
  * The rule: names match in any case. Bytes are not copied where a row has them in an array.
  */
final class RowColumns(schema: StructType) {
  import RowColumns._

  private def ordinal(name: String): Int = RowColumns.ordinal(schema, name)

  private val (key, value, headers) = (ordinal("key"), ordinal("value"), ordinal("headers"))
  private val (topic, partition, timestamp) = (ordinal("topic"), ordinal("partition"), ordinal("timestamp"))
  private val headerFields = headersType(headers)
  private val (headerKey, headerValue) = (headerFields.indexOf("key"), headerFields.indexOf("value"))

  private def headersType(ordinal: Int): Seq[String] =
    if (ordinal < 0) Nil
    else
      schema(ordinal).dataType match {
        case ArrayType(fields: StructType, _) => fields.fieldNames.toSeq
        case _ => Nil // Only nulls.
      }

  /** Reads a row; what it points at is valid until Spark's next row. */
  def read(from: InternalRow, row: RowToWrite): Unit = {
    readBytes(from, key, isText(key), row.fields.key)
    readBytes(from, value, isText(value), row.fields.value)
    readHeaders(from, row)
    row.topic = if (isNull(from, topic)) null else from.getUTF8String(topic).toString
    row.hasPartition = !isNull(from, partition)
    if (row.hasPartition) row.partition = integer(from, partition, schema(partition).dataType)
    row.hasTimestamp = !isNull(from, timestamp)
    if (row.hasTimestamp) row.timestampMs = Math.floorDiv(from.getLong(timestamp), MicrosPerMs)
  }

  private val textColumns = schema.map(_.dataType.isInstanceOf[StringType]).toArray

  private def isText(ordinal: Int): Boolean = ordinal >= 0 && textColumns(ordinal)

  private def isNull(from: InternalRow, ordinal: Int): Boolean = ordinal < 0 || from.isNullAt(ordinal)

  private def readBytes(from: InternalRow, ordinal: Int, isText: Boolean, range: ByteRange): Unit =
    if (isNull(from, ordinal)) range.setNull() else copyBytes(from, ordinal, isText, range)

  private def readHeaders(from: InternalRow, row: RowToWrite): Unit = {
    val ranges = row.fields.headers
    ranges.count = 0
    if (!isNull(from, headers) && headerFields.nonEmpty) {
      val array = from.getArray(headers)
      val fields = schema(headers).dataType.asInstanceOf[ArrayType].elementType.asInstanceOf[StructType]
      val isValueText = fields(headerValue).dataType.isInstanceOf[StringType]
      var number = 0
      while (number < array.numElements()) {
        val added = ranges.add()
        if (array.isNullAt(number)) {
          ranges.key(added).setNull()
          ranges.value(added).setNull()
        } else {
          val header = array.getStruct(number, headerFields.length)
          readBytes(header, headerKey, isText = true, ranges.key(added))
          readBytes(header, headerValue, isValueText, ranges.value(added))
        }
        number += 1
      }
    }
  }
}

object RowColumns {
  private val MicrosPerMs = 1000L

  /** Returns where a column is; -1 if there is none. */
  def ordinal(schema: StructType, name: String): Int =
    schema.fieldNames.indexWhere(_.toLowerCase(Locale.ROOT) == name)

  /** Points at bytes in the array of an `UnsafeRow`, where the field has its offset and size; else at a copy. */
  private def copyBytes(from: InternalRow, ordinal: Int, isText: Boolean, range: ByteRange): Unit =
    from match {
      case unsafe: UnsafeRow if unsafe.getBaseObject.isInstanceOf[Array[Byte]] =>
        val place = unsafe.getLong(ordinal)
        val start = unsafe.getBaseOffset - Platform.BYTE_ARRAY_OFFSET + (place >>> 32)
        range.set(unsafe.getBaseObject.asInstanceOf[Array[Byte]], start.toInt, place.toInt)
      case _ if isText => range.set(from.getUTF8String(ordinal).getBytes)
      case _ => range.set(from.getBinary(ordinal))
    }

  private def integer(from: SpecializedGetters, ordinal: Int, dataType: DataType): Long = dataType match {
    case ByteType => from.getByte(ordinal).toLong
    case ShortType => from.getShort(ordinal).toLong
    case IntegerType => from.getInt(ordinal).toLong
    case _ => from.getLong(ordinal)
  }
}
