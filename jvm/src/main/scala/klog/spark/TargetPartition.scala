package klog.spark

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.types.{BinaryType, DataType, IntegerType, LongType}

import klog.logformat.{ByteRange, Murmur2}

/** The task of a shuffle that writes a row: that of the partition that the row goes to.
  *
  * The rule: the column `partition` decides, else Kafka's hash of the key. Rows without a key stay together,
  * those of a task, in the partition that the task would have written without the shuffle. The same row of
  * the same task always goes to the same place, because Spark may run the task again.
  */
object TargetPartition {

  /** Returns the number of the task, of as many as there are partitions.
    *
    * @param version
    *   of the state that the write is planned on
    */
  def of(partition: Option[Attribute], key: Option[Attribute], partitions: Int, version: Long): Expression = {
    val bytes = key.fold[Expression](Literal(null, BinaryType))(Cast(_, BinaryType))
    val arguments = Seq(bytes, Literal(partitions), Literal(version))
    val byKey = invoke("ofKey", arguments, Seq(BinaryType, IntegerType, LongType))
    partition.fold(byKey) { column =>
      val number = Seq(Cast(column, LongType), Literal(partitions))
      If(IsNotNull(column), invoke("ofNumber", number, Seq(LongType, IntegerType)), byKey)
    }
  }

  /** Returns whether an expression of a shuffle is a target. */
  def isTarget(expression: Expression): Boolean =
    expression.exists {
      case call: StaticInvoke => call.staticObject == getClass
      case _ => false
    }

  /** Throws if this Spark calls a static method in another way. */
  def probe(): Unit = {
    val _ = invoke("ofNumber", Seq(Literal(0L), Literal(1)), Seq(LongType, IntegerType))
  }

  private def invoke(name: String, arguments: Seq[Expression], types: Seq[DataType]): Expression =
    StaticInvoke(getClass, IntegerType, name, arguments, types, propagateNull = false, returnNullable = false)

  /** Returns the target of a row with this key. */
  def ofKey(key: Array[Byte], partitions: Int, version: Long): Int =
    if (key == null) ((version + TaskContext.getPartitionId()) % partitions).toInt
    else {
      val bytes = new ByteRange
      bytes.set(key, 0, key.length)
      Murmur2.partition(bytes, partitions)
    }

  /** Returns the target of a row that names its partition; the writer refuses one that the topic lacks. */
  def ofNumber(partition: Long, partitions: Int): Int = Math.floorMod(partition, partitions)
}
