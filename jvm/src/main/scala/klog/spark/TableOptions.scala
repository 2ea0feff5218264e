package klog.spark

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.CatalogEntry
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The options of a statement about a table of the catalog.
  *
  * The rule: an option of the statement wins over the same one of the table, unless it only repeats that.
  * Python alone knows which option is for reads and which for writes, so it gets all of them, and the names
  * of the table's.
  */
object TableOptions {

  /** Says which options are the table's (`klog.connector.catalog_tables`). */
  val Table: String = "klog.table"

  /** Returns the options of a statement and those of its table.
    *
    * If the user has set `klog.table`, it gets a value that Python refuses.
    */
  def of(entry: CatalogEntry, options: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val stored = entry.options.filter { case (name, text) => options.getOrDefault(name, text) == text }
    val names = stored.keys.map(_.toLowerCase(Locale.ROOT)).toList.asJava
    val (ofUser, others) =
      (options.asCaseSensitiveMap.asScala.toMap ++ stored).partition(_._1.equalsIgnoreCase(Table))
    val table = if (ofUser.isEmpty) PythonPlanner.json("name" -> entry.name, "options" -> names) else ""
    new CaseInsensitiveStringMap((others + (Table -> table)).asJava)
  }
}
