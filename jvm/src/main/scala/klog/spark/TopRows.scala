package klog.spark

import java.util.{Map => JavaMap}

import org.apache.spark.sql.connector.expressions.{NamedReference, SortDirection, SortOrder}

/** The rows with the lowest or the highest offsets.
  *
  * The rule: an offset is there once in a partition, so only the first column of an order matters if it is
  * the offset: the first rows of each partition are among them, whatever comes after. Spark sorts what is
  * read.
  */
final case class TopRows(rows: Int, isDescending: Boolean) {

  /** Returns the rows as Python's `TopRows.from_json` takes them. */
  def toJava: JavaMap[String, AnyRef] =
    JavaMap.of("rows", Int.box(rows), "isDescending", Boolean.box(isDescending))

  /** The most rows of a task. Its slices are of one partition, and its rows have rising offsets. */
  def taskLimit: Option[Int] = Option.unless(isDescending)(rows)

  override def toString: String = s"order: offset ${if (isDescending) "DESC" else "ASC"}, limit: $rows"
}

object TopRows {

  /** Returns the rows of an order and a limit; None if the order does not begin with the offset. */
  def of(orders: Seq[SortOrder], rows: Int): Option[TopRows] =
    orders.headOption.map(order => (order.expression, order.direction)).collect {
      case (column: NamedReference, direction) if column.fieldNames.toSeq == Seq("offset") =>
        TopRows(rows, direction == SortDirection.DESCENDING)
    }
}
