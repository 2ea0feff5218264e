package klog.spark

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types.{
  ArrayType,
  BinaryType,
  IntegerType,
  LongType,
  StructField,
  StructType,
  TimestampType
}
import org.apache.spark.sql.vectorized.{ColumnarBatch, ColumnVector}

import klog.logformat.{RecordRows, WantedColumns}
import klog.slice.{Slice, SliceError, TaskReader}

/** Makes the readers of tasks on executors.
  *
  * @param schema
  *   the columns to read
  * @param limit
  *   the most rows that a task returns
  * @param startTimestampMs
  *   rows that are earlier may be left out
  */
final class SliceReaderFactory(schema: StructType, limit: Long, startTimestampMs: Long, stores: TaskStores)
    extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean =
    partition.isInstanceOf[SliceInputPartition]

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("slices are read as columns")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
    val task = PlannedRead.task(partition.asInstanceOf[SliceInputPartition].pickledTask)
    val wanted = WantedColumns.of(schema.fieldNames.toSeq)
    val reader = new TaskReader(Slice.expandTask(task), wanted, stores.toStores, startTimestampMs)
    new SlicePartitionReader(reader, schema, limit, stores)
  }
}

/** Shows the rows of a task as columnar batches. The vectors are used again for each batch. */
private final class SlicePartitionReader(
    reader: TaskReader,
    schema: StructType,
    limit: Long,
    stores: TaskStores
) extends PartitionReader[ColumnarBatch] {
  private val topic = new TopicVector
  private val partition = new PartitionVector
  private val batch = new ColumnarBatch(schema.fields.map(vectorOf(reader.rows, _)))
  private var left = limit

  override def next(): Boolean = {
    val hasRows = left > 0 && classified(reader.next())
    if (hasRows) {
      val count = math.min(reader.rows.count.toLong, left).toInt
      left -= count
      topic.set(reader.slice.topic)
      partition.value = reader.slice.partition
      batch.setNumRows(count)
    }
    hasRows
  }

  override def get(): ColumnarBatch = batch

  private def classified[T](part: => T): T =
    try part
    catch {
      case exc: SliceError => throw stores.errorOf(exc.pythonClass, exc.sentence, exc)
      case NonFatal(exc) if stores.showsSecret(exc) =>
        throw stores.errorOf(
          "KlogError",
          s"${reader.slice.name}: ${reader.slice.path} cannot be read: $exc",
          exc
        )
    }

  override def currentMetricsValues(): Array[CustomTaskMetric] = ReadMetrics.ofTasks.values(reader.counts)

  override def close(): Unit = classified(reader.close())

  private def vectorOf(rows: RecordRows, field: StructField): ColumnVector =
    (field.name, field.dataType) match {
      case ("key", BinaryType) => new BytesVector(rows, BinaryType, rows.keys)
      case ("value", BinaryType) => new BytesVector(rows, BinaryType, rows.values)
      case ("topic", _) => topic
      case ("partition", IntegerType) => partition
      case ("offset", LongType) => new LongVector(LongType, rows.offsets)
      case ("timestamp", TimestampType) => new LongVector(TimestampType, rows.timestampsUs)
      case ("timestampType", IntegerType) => new IntVector(rows.timestampTypes)
      case ("headers", headers: ArrayType) => new HeadersVector(rows, headers)
      case (name, other) =>
        throw new IllegalArgumentException(s"klog has no column $name of type ${other.sql}")
    }
}
