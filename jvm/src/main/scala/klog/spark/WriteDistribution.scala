package klog.spark

import scala.annotation.nowarn

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite

/** Has the rows of a write leave one file for each partition and roll ([[BatchShuffle]]).
  *
  * The rule: tasks times partitions is the number of files otherwise. Rows that Spark has brought together by
  * their column `partition` already (`klog.repartition`) are in place, if no row leaves it to the key. The
  * option `distributionMode=none` turns it off.
  */
object WriteDistribution extends SparkStrategy {

  /** Spark makes a write after its optimizer, so this is added when the write is planned. */
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case DistributedRows(query, tasks) => Seq(DistributedRowsExec(planLater(query), tasks))
    case _ =>
      for (tasks <- tasksOf(plan).toSeq; query = plan.children.head if isMoved(query, tasks))
        yield planLater(plan.withNewChildren(Seq(DistributedRows(query, tasks))))
  }

  /** Throws if a class of this Spark lacks something that is used here. */
  @nowarn("cat=deprecation")
  def probe(): Unit = {
    classOf[AppendData].getMethod("write")
    classOf[WriteToDataSourceV2].getMethod("batchWrite")
    classOf[HashPartitioningLike].getMethod("expressions")
    classOf[ShufflePartitionIdPassThrough].getMethod("expr")
    classOf[PartitioningCollection].getMethod("partitionings")
    classOf[RangePartitioning].getMethod("ordering")
    SinglePartition.getClass.getMethods
    classOf[MicroBatchWrite].getMethod("writeSupport")
    classOf[DistributedRows].getMethods
    classOf[DistributedRowsExec].getMethods
    classOf[KlogWriteBuilder].getMethods
    classOf[KlogTable].getMethods
    BatchShuffle.probe()
  }

  /** The node of a micro-batch is deprecated for all but Spark itself. */
  @nowarn("cat=deprecation")
  private def tasksOf(plan: LogicalPlan): Option[PlannedTasks] = plan match {
    case append: AppendData => append.write.collect { case write: KlogWrite => write.tasks }
    case write: WriteToDataSourceV2 =>
      write.batchWrite match {
        case batch: MicroBatchWrite =>
          Option(batch.writeSupport).collect { case stream: KlogStreamingWrite => stream.tasks }
        case _ => None
      }
    case _ => None
  }

  private def isMoved(query: LogicalPlan, tasks: PlannedTasks): Boolean =
    tasks.isDistributed && !query.isInstanceOf[DistributedRows]
}

/** The rows of a write, in the tasks of their partitions. */
final case class DistributedRows(child: LogicalPlan, tasks: PlannedTasks) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): DistributedRows = copy(newChild)
}

/** Returns the batches of [[BatchShuffle]] instead of rows, where that saves files. */
final case class DistributedRowsExec(child: SparkPlan, tasks: PlannedTasks) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def nodeName: String = if (areInPlace) "KlogRowsInPlace" else "KlogBatchShuffle"
  override def simpleString(maxFields: Int): String = s"$nodeName one file a partition, topic ${tasks.topic}"

  /** A column such as `rand()` has other values if the rows of a task come in another order. */
  override protected def doExecute(): RDD[InternalRow] = {
    val isOrderSensitive = child.exists(_.expressions.exists(!_.deterministic))
    val rows = child.execute()
    if (areInPlace) rows else BatchShuffle.of(rows, tasks, isOrderSensitive)
  }

  /** Whether all rows of a partition are in one task. */
  private def areInPlace: Boolean = RowColumns.ordinal(schema, "partition") match {
    case at if at >= 0 && !output(at).nullable => isBy(child.outputPartitioning, output(at))
    case _ => false
  }

  private def isBy(partitioning: Partitioning, partition: Attribute): Boolean = partitioning match {
    case all: PartitioningCollection => all.partitionings.exists(isBy(_, partition))
    case hash: HashPartitioningLike => areOf(hash.expressions, partition)
    case direct: ShufflePartitionIdPassThrough => areOf(Seq(direct.expr), partition)
    case range: RangePartitioning => areOf(range.ordering.map(_.child), partition)
    case other => other == SinglePartition
  }

  /** Whether expressions have one value for all rows of a partition. */
  private def areOf(expressions: Seq[Expression], partition: Attribute): Boolean =
    expressions.forall(_.deterministic) && AttributeSet(expressions) == AttributeSet(partition)

  override protected def withNewChildInternal(newChild: SparkPlan): DistributedRowsExec = copy(newChild)
}
