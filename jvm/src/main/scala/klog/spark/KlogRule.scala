package klog.spark

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{NamedRelation, ResolvedTable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{StreamingRelationV2, WriteToStream}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge

/** Puts klog's table in the place of Python's table of the format `klog`.
  *
  * The rule: the plan stays the same but for the table, and the columns of a stream that nothing uses. A
  * table of the session's catalog brings the options that the catalog keeps. If a class of this Spark is
  * another one than the shim was made for, neither this plan nor a later one changes, with one warning.
  *
  * @param isBroken
  *   whether such a class was met; the rules of all sessions share it
  */
final class KlogRule private[spark] (session: SparkSession, isBroken: AtomicBoolean)
    extends Rule[LogicalPlan]
    with Logging {
  def this(session: SparkSession) = this(session, KlogRule.isBroken)

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (isBroken.get) plan
    else
      try replaceTables(plan)
      catch {
        case exc @ (_: LinkageError | _: ReflectiveOperationException) =>
          if (!isBroken.getAndSet(true))
            logWarning(s"klog's jar does not fit this Spark, so Python reads the format klog: $exc")
          plan
      }

  private def replaceTables(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case relation: DataSourceV2Relation =>
      replaced(relation, relation.table, entryOf(relation.catalog, relation.identifier))
    case relation: StreamingRelationV2 =>
      KlogPythonBridge.dataSourceOf(relation.table, KlogTable.Format).foreach(KlogPythonBridge.prepareStream)
      def entry = entryOf(relation.catalog, relation.identifier)
      replaced(relation, relation.table, entry, isStreaming = true)
    case command: ResolvedTable => described(command)
    case write: V2WriteCommand =>
      write.table match {
        case relation: DataSourceV2Relation =>
          val table = replaced(relation, relation.table, entryOf(relation.catalog, relation.identifier))
          if (table eq relation) write else write.withNewTable(table)
        case _ => write
      }
    case write: WriteToStream =>
      val (catalog, identifier) = write.catalogAndIdent.unzip
      StreamColumns.prune(replaced(write, write.sink, entryOf(catalog, identifier)))
    case create: V2CreateTablePlan => NewTable.checked(create)
  }

  /** Returns a node with klog's table, if it has Python's.
    *
    * @param entry
    *   what the session's catalog keeps of the table. It is only asked for if the table is klog's: the
    *   catalog of another format may replace the session's, and has tables that this one does not know
    */
  private def replaced[T <: LogicalPlan](
      node: T,
      table: Table,
      entry: => Option[CatalogEntry],
      isStreaming: Boolean = false
  ): T =
    KlogPythonBridge.dataSourceOf(table, KlogTable.Format) match {
      case Some(dataSource) =>
        val schema = KlogPythonBridge.schemaOf(table)
        KlogRule.withValue(node, table, new KlogTable(table, dataSource, isStreaming, schema, entry))
      case None => node
    }

  /** Returns the table of a command, such as `DESCRIBE`, with what the session's catalog keeps of it. */
  private def described(command: ResolvedTable): ResolvedTable = {
    val isKlog = KlogPythonBridge.dataSourceOf(command.table, KlogTable.Format).isDefined
    val entry = if (isKlog) entryOf(Some(command.catalog), Some(command.identifier)) else None
    entry
      .map(new DescribedTable(command.table, _))
      .fold(command)(KlogRule.withValue(command, command.table, _))
  }

  private def entryOf(catalog: Option[CatalogPlugin], identifier: Option[Identifier]): Option[CatalogEntry] =
    for (_ <- catalog.filter(KlogCatalogBridge.isSessionCatalog); name <- identifier)
      yield KlogCatalogBridge.entryOf(session, name)
}

object KlogRule {
  private[spark] val isBroken = new AtomicBoolean

  /** Throws if a node of a plan lacks something that is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method is missing
    */
  def probe(): Unit = {
    val tableOf = Seq("table", "catalog", "identifier")
    tableOf.foreach(classOf[DataSourceV2Relation].getMethod(_))
    tableOf.foreach(classOf[StreamingRelationV2].getMethod(_))
    tableOf.foreach(classOf[ResolvedTable].getMethod(_))
    classOf[V2WriteCommand].getMethod("table")
    classOf[V2WriteCommand].getMethod("withNewTable", classOf[NamedRelation])
    Seq("sink", "catalogAndIdent").foreach(classOf[WriteToStream].getMethod(_))
    classOf[LogicalPlan].getMethod("resolveOperatorsUp", classOf[PartialFunction[_, _]])
    classOf[LogicalPlan].getMethod("makeCopy", classOf[Array[AnyRef]])
    StreamColumns.probe()
  }

  /** Returns a node with one of its values replaced, whatever other values this Spark gives it. */
  def withValue[T <: LogicalPlan](node: T, old: AnyRef, value: AnyRef): T = {
    val values = node.productIterator.map(_.asInstanceOf[AnyRef])
    node.makeCopy(values.map(current => if (current eq old) value else current).toArray).asInstanceOf[T]
  }
}
