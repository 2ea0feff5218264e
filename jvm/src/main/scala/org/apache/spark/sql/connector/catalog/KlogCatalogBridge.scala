package org.apache.spark.sql.connector.catalog

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, SessionCatalog}
import org.apache.spark.sql.internal.SessionState
import org.apache.spark.sql.{classic, SparkSession}

/** The one place that touches Spark's session catalog, which is not public.
  *
  * Its signatures are the same in Spark 4.2.0 to 4.3.0.
  */
object KlogCatalogBridge {

  /** Throws if a class of this Spark lacks something that is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method is missing
    */
  def probe(): Unit = {
    classOf[classic.SparkSession].getMethod("sessionState")
    classOf[SessionState].getMethod("catalog")
    classOf[SessionCatalog].getMethod("getTableMetadata", classOf[TableIdentifier])
    V1Table.getClass.getMethod("addV2TableProperties", classOf[CatalogTable])
  }

  /** Returns whether a catalog is the one of the session, which loses the options of Python's tables. */
  def isSessionCatalog(catalog: CatalogPlugin): Boolean = catalog.name == CatalogManager.SESSION_CATALOG_NAME

  /** Returns what the session's catalog keeps of a table. */
  def entryOf(session: SparkSession, identifier: Identifier): CatalogEntry = {
    val catalog = session.asInstanceOf[classic.SparkSession].sessionState.catalog
    val table = catalog.getTableMetadata(TableIdentifier(identifier.name, identifier.namespace.headOption))
    val properties = V1Table.addV2TableProperties(table)
    // The folder of a managed table is Spark's own choice, and deleted with the table.
    val path =
      if (table.tableType == CatalogTableType.EXTERNAL) properties.get(TableCatalog.PROP_LOCATION) else None
    CatalogEntry(
      table.identifier.unquotedString,
      table.storage.properties ++ path.map("path" -> _),
      properties
    )
  }
}

/** What the session's catalog keeps of a table.
  *
  * @param options
  *   those of `CREATE TABLE`, and its location as `path`
  * @param properties
  *   as `DESCRIBE TABLE` shows them
  */
final case class CatalogEntry(name: String, options: Map[String, String], properties: Map[String, String])
