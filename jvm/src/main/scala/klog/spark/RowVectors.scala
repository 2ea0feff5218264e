package klog.spark

import java.util.{Arrays => JavaArrays}

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnarArray, ColumnarMap, ColumnVector}
import org.apache.spark.unsafe.types.UTF8String

import klog.logformat.{FieldPositions, HeaderFields, RecordRows}

/** The columns of `RecordRows` as Spark's column vectors; they show what the rows have at the moment.
  *
  * The rule: nothing is copied but a field that is asked for as an array, which its caller may keep.
  * Spark closes vectors after each batch; there is nothing to close.
  */
abstract class RowVector(columnType: DataType) extends ColumnVector(columnType) {
  override def close(): Unit = ()
  override def hasNull: Boolean = false
  override def numNulls: Int = 0
  override def isNullAt(row: Int): Boolean = false
  override def getBoolean(row: Int): Boolean = refuse()
  override def getByte(row: Int): Byte = refuse()
  override def getShort(row: Int): Short = refuse()
  override def getInt(row: Int): Int = refuse()
  override def getLong(row: Int): Long = refuse()
  override def getFloat(row: Int): Float = refuse()
  override def getDouble(row: Int): Double = refuse()
  override def getArray(row: Int): ColumnarArray = refuse()
  override def getMap(row: Int): ColumnarMap = refuse()
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = refuse()
  override def getUTF8String(row: Int): UTF8String = refuse()
  override def getBinary(row: Int): Array[Byte] = refuse()
  override def getChild(ordinal: Int): ColumnVector = refuse()

  private def refuse[T](): T = throw new UnsupportedOperationException(s"not a column of ${dataType.sql}")
}

/** 64-bit numbers. */
final class LongVector(columnType: DataType, values: Array[Long]) extends RowVector(columnType) {
  override def getLong(row: Int): Long = values(row)
}

/** 32-bit numbers. */
final class IntVector(values: Array[Int]) extends RowVector(IntegerType) {
  override def getInt(row: Int): Int = values(row)
}

/** The partition, which all rows have. */
final class PartitionVector extends RowVector(IntegerType) {
  var value: Int = 0
  override def getInt(row: Int): Int = value
}

/** The topic, which all rows have. */
final class TopicVector extends RowVector(StringType) {
  private var text = UTF8String.EMPTY_UTF8

  def set(topic: String): Unit = text = UTF8String.fromString(topic)
  override def getUTF8String(row: Int): UTF8String = text
  override def getBinary(row: Int): Array[Byte] = text.getBytes
}

/** Bytes that lie in the data of the rows; a length of -1 is null. */
final class BytesVector(rows: RecordRows, columnType: DataType, fields: FieldPositions)
    extends RowVector(columnType) {
  private def starts = fields.starts
  private def lengths = fields.lengths

  override def hasNull: Boolean = true
  override def isNullAt(row: Int): Boolean = lengths(row) < 0

  override def getBinary(row: Int): Array[Byte] = {
    val length = lengths(row)
    if (length < 0) null
    else {
      val start = starts(row)
      JavaArrays.copyOfRange(rows.data, start, start + length)
    }
  }

  override def getUTF8String(row: Int): UTF8String = {
    val length = lengths(row)
    if (length < 0) null else UTF8String.fromBytes(rows.data, starts(row), length)
  }
}

/** Headers: an array of key and value for each row, null for a row without headers. */
final class HeadersVector(rows: RecordRows, columnType: ArrayType) extends RowVector(columnType) {
  private val headers = new HeaderVector(rows, rows.headers, columnType.elementType)

  override def hasNull: Boolean = true
  override def isNullAt(row: Int): Boolean = rows.headerCounts(row) == 0
  override def getChild(ordinal: Int): ColumnVector = headers

  override def getArray(row: Int): ColumnarArray =
    new ColumnarArray(headers, rows.firstHeaders(row), rows.headerCounts(row))
}

/** The headers of all rows, one after the other: structs of key and value. */
final class HeaderVector(rows: RecordRows, headers: HeaderFields, elementType: DataType)
    extends RowVector(elementType) {
  private val keys = new BytesVector(rows, StringType, headers.keys)
  private val values = new BytesVector(rows, BinaryType, headers.values)

  override def getChild(ordinal: Int): ColumnVector = if (ordinal == 0) keys else values
}
