package org.apache.spark.sql.connector.catalog

import java.lang.reflect.Constructor

import scala.collection.immutable.ListMap

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, SessionCatalog}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SessionState
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{classic, SparkSession}

/** The one place that touches Spark's session catalog, and what its commands keep of a new table. Both are
  * not public.
  *
  * Their signatures are the same in Spark 4.2.0 to 4.3.0.
  */
object KlogCatalogBridge {

  private val Spec = "tableSpec"
  private val WriteOptions = "writeOptions"

  /** Throws if a class of this Spark lacks something that is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method, a field or a constructor is missing
    */
  def probe(): Unit = {
    classOf[classic.SparkSession].getMethod("sessionState")
    classOf[SessionState].getMethod("catalog")
    classOf[SessionCatalog].getMethod("getTableMetadata", classOf[TableIdentifier])
    V1Table.getClass.getMethod("addV2TableProperties", classOf[CatalogTable])
    Seq("provider", "options", "location").foreach(classOf[TableSpec].getMethod(_))
    specConstructor
    for {
      command <- Seq(classOf[CreateTableAsSelect], classOf[ReplaceTableAsSelect])
      field <- Seq(Spec, WriteOptions)
    } command.getDeclaredField(field)
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

  /** Returns the table that a command creates in the session's catalog; None if it is not resolved yet, or
    * creates another one.
    */
  def newTableOf(create: V2CreateTablePlan): Option[NewCatalogTable] = create.name match {
    case name: ResolvedIdentifier if isSessionCatalog(name.catalog) && create.childrenResolved =>
      val isReplaced = create.isInstanceOf[ReplaceTableAsSelect]
      specOf(create).map(spec =>
        NewCatalogTable(spec.provider, spec.options, spec.location, create.tableSchema, isReplaced)
      )
    case _ => None
  }

  /** Returns a command that keeps the options of its write with the table: `saveAsTable` has no others. */
  def withStoredOptions(create: V2CreateTablePlan): V2CreateTablePlan =
    (create, specOf(create)) match {
      case (query: V2CreateTableAsSelectPlan, Some(spec)) =>
        val fields = fieldsOf(query)
        val options = fields(WriteOptions).asInstanceOf[Map[String, String]]
        val kept = spec.options ++ options.filterNot(_._1.equalsIgnoreCase("path"))
        val values = fieldsOf(spec).updated("options", kept).values.toArray
        val complete = specConstructor.newInstance(values: _*)
        val changes = Seq(Spec -> complete, WriteOptions -> Map.empty[String, String])
        query.makeCopy((fields ++ changes).values.toArray).asInstanceOf[V2CreateTablePlan]
      case _ => create
    }

  private def specConstructor: Constructor[TableSpec] =
    classOf[TableSpec].getConstructor(classOf[TableSpec].getDeclaredFields.map(_.getType): _*)

  private def specOf(create: LogicalPlan): Option[TableSpec] =
    create.productIterator.collectFirst { case spec: TableSpec => spec }

  /** Returns the values of a node, or of a part of it, by name and in order: versions of Spark have others. */
  private def fieldsOf(node: Product): ListMap[String, AnyRef] =
    ListMap.from(node.productElementNames.zip(node.productIterator.map(_.asInstanceOf[AnyRef])))
}

/** A table that the session's catalog is to create.
  *
  * @param columns
  *   those of the statement; empty if it names none
  * @param isReplaced
  *   whether the rows of a query replace those of another table
  */
final case class NewCatalogTable(
    provider: Option[String],
    options: Map[String, String],
    location: Option[String],
    columns: StructType,
    isReplaced: Boolean
)

/** What the session's catalog keeps of a table.
  *
  * @param options
  *   those of `CREATE TABLE`, and its location as `path`
  * @param properties
  *   as `DESCRIBE TABLE` shows them
  */
final case class CatalogEntry(name: String, options: Map[String, String], properties: Map[String, String])
