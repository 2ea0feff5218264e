package klog.spark

import java.util.OptionalLong

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.partitioning.{
  KeyGroupedPartitioning,
  Partitioning,
  UnknownPartitioning
}
import org.apache.spark.sql.types.StructType

/** A batch, planned by Python once, and read by the JVM if the plan says that it can.
  *
  * @param schema
  *   the columns of the query
  * @param pushed
  *   the filters that the plan applies, for EXPLAIN
  * @param top
  *   the rows that are wanted by offset; None for all
  * @param limit
  *   the most rows that a task returns, if any rows will do
  */
final class KlogScan(
    planner: PythonPlanner,
    schema: StructType,
    tableSchema: StructType,
    bounds: RowBounds,
    pushed: Seq[String],
    top: Option[TopRows],
    limit: Option[Int],
    engine: Engine
) extends Scan
    with SupportsReportStatistics
    with SupportsReportPartitioning
    with SupportsRuntimeV2Filtering {

  /** Python cannot read rows without columns, so it gets one. */
  private val pythonSchema =
    if (schema.nonEmpty) schema else StructType(tableSchema.filter(_.name == "partition").take(1))
  private lazy val plan =
    planner.plan(if (pythonSchema.isEmpty) tableSchema else pythonSchema, bounds, top)
  private lazy val refusal = plan.summary.refusal(planner.options)
  private lazy val isPython = engine.isPython(refusal)
  private lazy val pythonScan = plan.pythonScan()

  /** Whether each task is of one partition number, which Spark is told if the query has the column. */
  private lazy val isKeyed =
    !isPython && plan.summary.taskPartitions.nonEmpty && schema.fieldNames.contains("partition")

  /** The partition numbers that the other side of a join has; None for all. */
  private var joinedPartitions: Option[Set[Int]] = None

  override def readSchema(): StructType =
    if (schema.isEmpty && isPython) if (pythonSchema.isEmpty) tableSchema else pythonSchema else schema

  override def toBatch: Batch = if (isPython) pythonScan.toBatch else new SliceBatch

  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.of(plan.summary.sizeBytes)
    override def numRows(): OptionalLong = OptionalLong.of(plan.summary.offsetCount)
  }

  /** Returns the partition number, by which Spark then groups and joins without a shuffle. It reads each
    * number in one task for that, so with fewer numbers than cores it is not told.
    */
  override def outputPartitioning(): Partitioning = {
    val numbers = plan.summary.taskPartitions.distinct.size
    if (isKeyed && numbers >= SparkContext.getOrCreate().defaultParallelism)
      new KeyGroupedPartitioning(Array(Expressions.identity("partition")), numbers)
    else new UnknownPartitioning(plan.tasks.size)
  }

  override def filterAttributes(): Array[NamedReference] =
    if (isKeyed) Array(Expressions.column("partition")) else Array.empty

  override def filter(predicates: Array[Predicate]): Unit =
    joinedPartitions =
      predicates.flatMap(RowBounds.of(_)).map(_.bounds).foldLeft(RowBounds())(_ and _).partitions

  override def description(): String = {
    val summary = plan.summary
    val name = if (isPython) s"engine=python ($refusal)" else "engine=jvm"
    val parts = Seq(
      Some(s"$name, ${summary.sizes}"),
      Option.when(pushed.nonEmpty)(s"pushed: [${pushed.mkString(", ")}]"),
      top.map(_.toString),
      limit.map(rows => s"limit: $rows"),
      Some(s"columns: ${schema.fieldNames.mkString(",")}")
    )
    parts.flatten.mkString(", ")
  }

  override def supportedCustomMetrics(): Array[CustomMetric] =
    if (isPython) ReadMetrics.all ++ pythonScan.supportedCustomMetrics else ReadMetrics.all

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ReadMetrics.driverValues(isPython)

  private final class SliceBatch extends Batch {
    private lazy val stores = TaskStores.of(plan.summary.schemes, planner.options)

    override def planInputPartitions(): Array[InputPartition] =
      if (!isKeyed) plan.tasks.map(new SliceInputPartition(_)).toArray
      else {
        val keyed = plan.tasks.zip(plan.summary.taskPartitions)
        val joined = keyed.filter { case (_, number) => joinedPartitions.forall(_.contains(number)) }
        joined.map { case (task, number) => new KeyedInputPartition(task, number) }.toArray
      }

    override def createReaderFactory(): PartitionReaderFactory = {
      val taskLimit = limit.orElse(top.flatMap(_.taskLimit)).fold(Long.MaxValue)(_.toLong)
      new SliceReaderFactory(schema, taskLimit, bounds.startTimestampMs.getOrElse(Long.MinValue), stores)
    }
  }
}
