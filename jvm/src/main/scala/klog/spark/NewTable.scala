package klog.spark

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2CreateTablePlan}
import org.apache.spark.sql.connector.catalog.{KlogCatalogBridge, NewCatalogTable, TableCatalog}
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
  def checked(create: V2CreateTablePlan): LogicalPlan =
    if (!KlogCatalogBridge.newTableOf(create).exists(isKlog)) create
    else {
      val complete = KlogCatalogBridge.withStoredOptions(create)
      KlogCatalogBridge.newTableOf(complete).filter(_.columns.nonEmpty).foreach(check)
      complete
    }

  private def isKlog(table: NewCatalogTable): Boolean =
    table.provider.exists(_.equalsIgnoreCase(KlogTable.Format))

  private def check(table: NewCatalogTable): Unit = {
    val request = PythonPlanner.json(
      "schema" -> table.columns.json,
      "isReplaced" -> java.lang.Boolean.valueOf(table.isReplaced)
    )
    val options = table.options.map { case (name, text) => s"${TableCatalog.OPTION_PREFIX}$name" -> text } ++
      table.location.map("path" -> _) +
      (TableCatalog.PROP_PROVIDER -> KlogTable.Format) + (TableOptions.Table -> request)
    KlogPythonBridge.checkNewTable(KlogTable.Format, new CaseInsensitiveStringMap(options.asJava))
  }
}
