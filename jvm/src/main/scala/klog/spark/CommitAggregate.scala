package klog.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.{Expression, NamedReference}
import org.apache.spark.sql.connector.expressions.aggregate._
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.types.{DataType, LongType, StructField, StructType, TimestampType}

import klog.logformat.RecordRows

/** An aggregate of a query that commits may know.
  *
  * @param name
  *   as Python's `aggregate_by_commits` has it
  */
final case class CommitAggregate(name: String, dataType: DataType) {

  /** Returns a value of Python's as Spark has it. */
  def value(number: Option[Long]): Any = number
    .map { value =>
      if (dataType == TimestampType) RecordRows.micros(value) else value
    }
    .orNull[Any]
}

object CommitAggregate {

  /** Returns all aggregates of a query; None if commits know none of that kind. */
  def of(aggregation: Aggregation): Option[Seq[CommitAggregate]] = {
    val aggregates = aggregation.aggregateExpressions.toSeq.flatMap(of)
    val isKnown = aggregation.groupByExpressions.isEmpty && aggregates.nonEmpty &&
      aggregates.length == aggregation.aggregateExpressions.length
    Option.when(isKnown)(aggregates)
  }

  private def of(function: AggregateFunc): Option[CommitAggregate] = function match {
    case _: CountStar => Some(CommitAggregate("count", LongType))
    case min: Min => extreme("min", min.column)
    case max: Max => extreme("max", max.column)
    case _ => None
  }

  private def extreme(name: String, column: Expression): Option[CommitAggregate] = column match {
    case reference: NamedReference =>
      reference.fieldNames.toSeq match {
        case Seq("offset") => Some(CommitAggregate(s"${name}Offset", LongType))
        case Seq("timestamp") => Some(CommitAggregate(s"${name}TimestampMs", TimestampType))
        case _ => None
      }
    case _ => None
  }
}

/** Aggregates as commits say them: no file is opened and no task runs.
  *
  * @param values
  *   by name, as Python has them
  */
final class AggregateScan(aggregates: Seq[CommitAggregate], values: Map[String, Option[Long]])
    extends LocalScan {
  override def rows(): Array[InternalRow] =
    Array(InternalRow.fromSeq(aggregates.map(aggregate => aggregate.value(values(aggregate.name)))))

  override def readSchema(): StructType = StructType(aggregates.zipWithIndex.map { case (aggregate, number) =>
    StructField(s"${aggregate.name}$number", aggregate.dataType)
  })

  override def description(): String = "aggregates from the commits"
}
