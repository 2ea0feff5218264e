package klog.spark

import java.util.Locale

import scala.annotation.nowarn

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  DirectShufflePartitionID,
  Expression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite

/** Shuffles the rows of a write by the partition that they go to: one file for each partition and roll.
  *
  * The rule: tasks times partitions is the number of files without the shuffle, so rows are shuffled unless a
  * task has one partition each anyway: rows without a key and a partition, one task, rows that are shuffled by their column
  * `partition` already (`klog.repartition`). Sorted rows stay, as a shuffle would lose their order. The option
  * `distributionMode=hash` turns it on.
  */
object WriteDistribution extends SparkStrategy {

  /** Spark makes a write after its optimizer, so the shuffle is added when the write is planned. */
  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    tasksOf(plan).toSeq.flatMap { tasks =>
      distributed(plan.children.head, tasks).map(query => planLater(plan.withNewChildren(Seq(query))))
    }

  /** Throws if a class of this Spark lacks something that is used here. */
  def probe(): Unit = {
    classOf[MicroBatchWrite].getMethod("writeSupport")
    classOf[DirectShufflePartitionID].getConstructor(classOf[Expression])
    val (option, plan) = (classOf[Option[_]], classOf[LogicalPlan])
    classOf[RepartitionByExpression].getConstructor(classOf[Seq[_]], plan, option, option)
    classOf[KlogWriteBuilder].getMethods
    classOf[KlogTable].getMethods
    TargetPartition.probe()
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

  /** Returns the rows of a write after a shuffle; None if they stay where they are. */
  private def distributed(query: LogicalPlan, tasks: PlannedTasks): Option[LogicalPlan] = {
    def column(name: String): Option[Attribute] = query.output.find(_.name.toLowerCase(Locale.ROOT) == name)
    val partition = column("partition")
    val key = column("key")
    val isMoved = (key.isDefined || partition.isDefined) && !isInPlace(query, partition)
    for (topic <- Option.when(isMoved)(tasks).flatMap(_.distributedTopic)) yield {
      tasks.setDistributed()
      val target = TargetPartition.of(partition, key, topic.partitions, topic.baseVersion)
      RepartitionByExpression(Seq(DirectShufflePartitionID(target)), query, Some(topic.partitions))
    }
  }

  /** Returns whether rows are to stay in their tasks: they are sorted, in one task, or in their places. */
  private def isInPlace(query: LogicalPlan, partition: Option[Attribute]): Boolean =
    query.maxRows.exists(_ <= 1) || (belowColumns(query) match {
      case _: Sort => true
      case repartition: Repartition => repartition.numPartitions == 1
      case shuffle: RepartitionByExpression =>
        val isByPartition = partition.nonEmpty && shuffle.references == AttributeSet(partition)
        val isOurs = shuffle.partitionExpressions.exists(TargetPartition.isTarget)
        shuffle.numPartitions == 1 || isByPartition || isOurs
      case _ => false
    })

  /** Returns what a query has below its columns and filters, which leave rows where they are. */
  private def belowColumns(query: LogicalPlan): LogicalPlan = query match {
    case project: Project => belowColumns(project.child)
    case filter: Filter => belowColumns(filter.child)
    case other => other
  }
}
