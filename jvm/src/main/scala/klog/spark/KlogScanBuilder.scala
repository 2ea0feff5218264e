package klog.spark

import org.apache.spark.sql.connector.expressions.SortOrder
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.StructType

/** Takes from a query what a plan can use: columns, bounds, a limit, an order by offset with a limit, and
  * aggregates that commits know.
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
    with SupportsPushDownTopN
    with SupportsPushDownAggregates {
  private var schema = tableSchema
  private var bounds = RowBounds()
  private var pushed = Array.empty[Predicate]
  private var limit: Option[Int] = None
  private var top: Option[TopRows] = None
  private var aggregateScan: Option[AggregateScan] = None

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

  override def pushTopN(orders: Array[SortOrder], rows: Int): Boolean = {
    top = TopRows.of(orders.toSeq, rows)
    top.isDefined
  }

  // Each task stops at the limit, and Spark sorts and cuts what they return together.
  override def isPartiallyPushed: Boolean = true

  override def supportCompletePushDown(aggregation: Aggregation): Boolean =
    CommitAggregate.of(aggregation).isDefined

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    aggregateScan = CommitAggregate.of(aggregation).flatMap { aggregates =>
      val names = aggregates.map(_.name)
      val values = planner.aggregates(bounds, names)
      Option.when(names.forall(values.contains))(new AggregateScan(aggregates, values))
    }
    aggregateScan.isDefined
  }

  override def build(): Scan = aggregateScan.getOrElse {
    val filters = pushed.map(_.toString).filterNot(_.endsWith("IS NOT NULL")).toSeq
    new KlogScan(planner, schema, tableSchema, bounds, filters, top, limit, engine)
  }
}
