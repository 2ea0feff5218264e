package klog.spark

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{StreamingRelationV2, WriteToStream}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge

/** Puts klog's table in the place of Python's table of the format `klog`.
  *
  * The rule: the plan stays the same but for the table, and the columns of a stream that nothing uses. If
  * a class of this Spark is another one than the shim was made for, the plan does not change, with one
  * warning.
  */
final class KlogRule extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (KlogRule.isBroken) plan
    else
      try replaceTables(plan)
      catch {
        case exc @ (_: LinkageError | _: ReflectiveOperationException) =>
          KlogRule.isBroken = true
          logWarning(s"klog's jar does not fit this Spark, so Python reads the format klog: $exc")
          plan
      }

  private def replaceTables(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case relation: DataSourceV2Relation => replaced(relation, relation.table, isStreaming = false)
    case relation: StreamingRelationV2 => replaced(relation, relation.table, isStreaming = true)
    case write: WriteToStream => StreamColumns.prune(write)
  }

  private def replaced(relation: LogicalPlan, table: Table, isStreaming: Boolean): LogicalPlan =
    KlogPythonBridge.dataSourceOf(table, KlogTable.Format) match {
      case Some(dataSource) =>
        val schema = KlogPythonBridge.schemaOf(table)
        KlogRule.withValue(relation, table, new KlogTable(table, dataSource, isStreaming, schema))
      case None => relation
    }
}

object KlogRule {
  @volatile private var isBroken = false

  /** Returns a node with one of its values replaced, whatever other values this Spark gives it. */
  def withValue(node: LogicalPlan, old: AnyRef, value: AnyRef): LogicalPlan = {
    val values = node.productIterator.map(_.asInstanceOf[AnyRef])
    node.makeCopy(values.map(current => if (current eq old) value else current).toArray)
  }
}
