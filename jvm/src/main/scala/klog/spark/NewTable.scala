package klog.spark

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.catalog.{KlogCatalogBridge, TableCatalog}
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A table of the format `klog` that the session's catalog is to create.
  *
  * The rule: the catalog shows what it keeps, so Python checks the options before it keeps them. Spark asks
  * Python only if it needs the columns; this asks if the statement says them. A table that `saveAsTable`
  * creates keeps its options, too.
  */
object NewTable {

  /** Returns the command that creates the table, checked.
    *
    * @throws org.apache.spark.sql.AnalysisException
    *   if the table is refused
    */
  def checked(create: V2CreateTablePlan): LogicalPlan = (create.name, specOf(create)) match {
    case (name: ResolvedIdentifier, Some(spec))
        if KlogCatalogBridge.isSessionCatalog(name.catalog) && isKlog(spec) && create.childrenResolved =>
      val complete = create match {
        case query: V2CreateTableAsSelectPlan => withStoredOptions(query, spec)
        case _ => create
      }
      if (complete.tableSchema.nonEmpty) check(complete, specOf(complete).getOrElse(spec))
      complete
    case _ => create
  }

  private def isKlog(spec: TableSpec): Boolean = spec.provider.exists(_.equalsIgnoreCase(KlogTable.Format))

  private def specOf(create: V2CreateTablePlan): Option[TableSpec] =
    create.productIterator.collectFirst { case spec: TableSpec => spec }

  private def check(create: V2CreateTablePlan, spec: TableSpec): Unit = {
    val request = PythonPlanner.json(
      "schema" -> create.tableSchema.json,
      "isReplaced" -> java.lang.Boolean.valueOf(create.isInstanceOf[ReplaceTableAsSelect])
    )
    val options = spec.options.map { case (name, text) => s"${TableCatalog.OPTION_PREFIX}$name" -> text } ++
      spec.location.map("path" -> _) +
      (TableCatalog.PROP_PROVIDER -> KlogTable.Format) + (TableOptions.Table -> request)
    KlogPythonBridge.checkNewTable(KlogTable.Format, new CaseInsensitiveStringMap(options.asJava))
  }

  /** Returns the command with the options of the write kept with the table: `saveAsTable` has no others. */
  private def withStoredOptions(create: V2CreateTableAsSelectPlan, spec: TableSpec): V2CreateTablePlan = {
    val writeOptions = KlogRule.fieldsOf(create)("writeOptions").asInstanceOf[Map[String, String]]
    val options = spec.options ++ writeOptions.filterNot(_._1.equalsIgnoreCase("path"))
    val specFields = KlogRule.fieldsOf(spec).updated("options", options).values.toArray
    val kept = classOf[TableSpec].getConstructors.head.newInstance(specFields: _*)
    val fields = KlogRule.fieldsOf(create) ++ Seq("tableSpec" -> kept, "writeOptions" -> Map.empty)
    create.makeCopy(fields.values.toArray).asInstanceOf[V2CreateTablePlan]
  }
}
