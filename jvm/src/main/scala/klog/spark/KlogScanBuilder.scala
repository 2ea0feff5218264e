package klog.spark

import org.apache.spark.sql.connector.expressions.aggregate.{Aggregation, CountStar}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** Takes from a query what a plan can use: columns, bounds, a limit, and a count that commits know.
  *
  * The rule: Spark asks for filters, an aggregation or a limit, columns, and then the scan. What is taken
  * reaches Python's planner, so it holds whichever engine reads. A filter is only kept from Spark if the
  * plan applies it exactly.
  */
final class KlogScanBuilder(planner: PythonPlanner, tableSchema: StructType, engine: Engine)
    extends ScanBuilder
    with SupportsPushDownV2Filters
    with SupportsPushDownRequiredColumns
    with SupportsPushDownLimit
    with SupportsPushDownAggregates {
  private var schema = tableSchema
  private var bounds = RowBounds()
  private var pushed = Array.empty[Predicate]
  private var limit: Option[Int] = None
  private var recordCount: Option[Long] = None
  private var countColumns = 0

  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    val bounded = predicates.map(predicate => predicate -> RowBounds.of(predicate))
    bounds = bounded.flatMap(_._2).map(_.bounds).foldLeft(bounds)(_ and _)
    pushed = bounded.collect { case (predicate, Some(_)) => predicate }
    bounded.collect { case (predicate, result) if !result.exists(_.isExact) => predicate }
  }

  override def pushedPredicates(): Array[Predicate] = pushed

  override def pruneColumns(required: StructType): Unit =
    schema = StructType(tableSchema.filter(field => required.fieldNames.contains(field.name)))

  override def pushLimit(rows: Int): Boolean = {
    limit = Some(rows)
    true
  }

  // Each task stops at the limit, and Spark cuts what they return together.
  override def isPartiallyPushed: Boolean = true

  override def supportCompletePushDown(aggregation: Aggregation): Boolean = isCount(aggregation)

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    if (isCount(aggregation)) {
      recordCount = planner.recordCount(bounds)
      countColumns = aggregation.aggregateExpressions.length
    }
    recordCount.isDefined
  }

  override def build(): Scan = recordCount match {
    case Some(count) => new CountScan(count, countColumns)
    case None =>
      val filters = pushed.map(_.toString).filterNot(_.endsWith("IS NOT NULL")).toSeq
      new KlogScan(planner, schema, tableSchema, bounds, filters, limit, engine)
  }

  private def isCount(aggregation: Aggregation): Boolean =
    aggregation.groupByExpressions.isEmpty && aggregation.aggregateExpressions.nonEmpty &&
      aggregation.aggregateExpressions.forall(_.isInstanceOf[CountStar])
}

/** The number of records, as commits say it: no file is opened and no task runs.
  *
  * @param columns
  *   how often the query asks for it
  */
private final class CountScan(count: Long, columns: Int) extends LocalScan {
  override def rows(): Array[InternalRow] = Array(InternalRow.fromSeq(Seq.fill(columns)(count)))
  override def readSchema(): StructType =
    StructType((0 until columns).map(number => StructField(s"count$number", LongType, nullable = false)))
  override def description(): String = s"engine=python, count(*) from the commits: $count"
}
