package klog.spark

import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate

import klog.logformat.RecordRows

/** What the filters of a query say about topics, partitions, offsets and times.
  *
  * The rule: a bound leaves out only rows that its filter leaves out. Those of topics, partitions and
  * offsets are exact, so that Spark need not apply the filter again; those of times are not.
  *
  * @param endOffset
  *   exclusive
  * @param endTimestampMs
  *   exclusive
  */
final case class RowBounds(
    topics: Option[Set[String]] = None,
    partitions: Option[Set[Int]] = None,
    startOffset: Option[Long] = None,
    endOffset: Option[Long] = None,
    startTimestampMs: Option[Long] = None,
    endTimestampMs: Option[Long] = None
) {

  /** Returns the bounds as Python's `RowBounds.from_json` takes them. */
  def toJava: JavaMap[String, AnyRef] = Seq[(String, Option[AnyRef])](
    "topics" -> topics.map(_.toSeq.sorted.asJava),
    "partitions" -> partitions.map(_.toSeq.sorted.map(Int.box).asJava),
    "startOffset" -> startOffset.map(Long.box),
    "endOffset" -> endOffset.map(Long.box),
    "startTimestampMs" -> startTimestampMs.map(Long.box),
    "endTimestampMs" -> endTimestampMs.map(Long.box)
  ).collect { case (name, Some(value)) => name -> value }.toMap.asJava

  /** Returns bounds with those of another filter. */
  def and(other: RowBounds): RowBounds = RowBounds(
    RowBounds.both(topics, other.topics)(_ intersect _),
    RowBounds.both(partitions, other.partitions)(_ intersect _),
    RowBounds.both(startOffset, other.startOffset)(math.max),
    RowBounds.both(endOffset, other.endOffset)(math.min),
    RowBounds.both(startTimestampMs, other.startTimestampMs)(math.max),
    RowBounds.both(endTimestampMs, other.endTimestampMs)(math.min)
  )
}

object RowBounds {

  /** Columns that are null in no row. */
  private val NeverNull = Set("topic", "partition", "offset", "timestamp", "timestampType")

  /** A filter as bounds; exact ones need not be applied again. */
  final case class Bounded(bounds: RowBounds, isExact: Boolean)

  /** Returns what a filter says; None if bounds cannot say it. */
  def of(filter: Predicate): Option[Bounded] = filter.name match {
    case "ALWAYS_TRUE" => Some(Bounded(RowBounds(), isExact = true))
    case "IS_NOT_NULL" =>
      column(filter.children.head).filter(NeverNull).map(_ => Bounded(RowBounds(), isExact = true))
    case "=" | "<" | "<=" | ">" | ">=" if filter.children.length == 2 =>
      comparison(filter.name, filter.children()(0), filter.children()(1))
    case "IN" if filter.children.length > 1 => in(filter.children.head, filter.children.tail.toSeq)
    case _ => None
  }

  private def comparison(operator: String, left: Expression, right: Expression): Option[Bounded] =
    (column(left), literal(right), column(right), literal(left)) match {
      case (Some(name), Some(value), _, _) => comparison(operator, name, value)
      case (_, _, Some(name), Some(value)) => comparison(flipped(operator), name, value)
      case _ => None
    }

  private def comparison(operator: String, name: String, value: Any): Option[Bounded] =
    (name, value) match {
      case ("offset", offset: Long) => offsets(operator, offset).map(Bounded(_, isExact = true))
      case ("partition", number: Int) if operator == "=" =>
        Some(Bounded(RowBounds(partitions = Some(Set(number))), isExact = true))
      case ("topic", text) if operator == "=" =>
        Some(Bounded(RowBounds(topics = Some(Set(text.toString))), isExact = true))
      case ("timestamp", micros: Long) => times(operator, micros)
      case _ => None
    }

  /** Returns the bounds of a comparison of times, from 1970 to the latest time that a column holds: before
    * it a look-up of a time passes over records, which have -1 ms without one, and after it times are cut.
    */
  private def times(operator: String, micros: Long): Option[Bounded] = {
    val ms = Math.floorDiv(micros, 1000L)
    val endMs = if (operator == "<" && Math.floorMod(micros, 1000L) == 0) ms else ms + 1
    val bounds = RowBounds(
      startTimestampMs = Option.when(ms >= 0 && !operator.startsWith("<"))(ms),
      endTimestampMs =
        Option.when(endMs >= 0 && endMs <= RecordRows.MaxTimestampMs && !operator.startsWith(">"))(endMs)
    )
    Option.when(bounds != RowBounds())(Bounded(bounds, isExact = false))
  }

  /** Returns the bounds of a comparison of offsets, which are below the largest number. */
  private def offsets(operator: String, offset: Long): Option[RowBounds] = {
    val next = if (offset == Long.MaxValue) offset else offset + 1
    operator match {
      case "=" => Some(RowBounds(startOffset = Some(offset), endOffset = Some(next)))
      case ">" => Some(RowBounds(startOffset = Some(next)))
      case ">=" => Some(RowBounds(startOffset = Some(offset)))
      case "<" => Some(RowBounds(endOffset = Some(offset)))
      case "<=" => Some(RowBounds(endOffset = Some(next)))
      case _ => None
    }
  }

  private def in(reference: Expression, values: Seq[Expression]): Option[Bounded] = {
    val literals = values.flatMap(literal)
    column(reference) match {
      case Some("partition") if literals.length == values.length =>
        val numbers = literals.collect { case number: Int => number }.toSet
        Some(Bounded(RowBounds(partitions = Some(numbers)), isExact = true))
      case Some("topic") if literals.length == values.length =>
        Some(Bounded(RowBounds(topics = Some(literals.map(_.toString).toSet)), isExact = true))
      case _ => None
    }
  }

  private def column(expression: Expression): Option[String] = expression match {
    case reference: NamedReference if reference.fieldNames.length == 1 => Some(reference.fieldNames.head)
    case _ => None
  }

  private def literal(expression: Expression): Option[Any] = expression match {
    case literal: Literal[_] => Option(literal.value)
    case _ => None
  }

  private def flipped(operator: String): String = operator match {
    case "<" => ">"
    case "<=" => ">="
    case ">" => "<"
    case ">=" => "<="
    case other => other
  }

  private def both[T](left: Option[T], right: Option[T])(combine: (T, T) => T): Option[T] =
    (left, right) match {
      case (Some(first), Some(second)) => Some(combine(first, second))
      case _ => left.orElse(right)
    }
}
