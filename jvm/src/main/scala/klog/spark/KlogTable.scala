package klog.spark

import java.util

import org.apache.spark.sql.connector.catalog.{
  CatalogEntry,
  SupportsRead,
  SupportsWrite,
  Table,
  TableCapability
}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.execution.datasources.v2.python.{KlogPythonBridge, PythonDataSourceV2}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Python's table of the format `klog`, whose scans and writes the JVM may run.
  *
  * @param python
  *   the table that Spark has made
  * @param columnsRead
  *   the columns of a stream that the query uses; a batch's are pruned by its scan builder
  * @param entry
  *   what the session's catalog keeps of it, if it is a table of the catalog
  */
final class KlogTable(
    val python: Table,
    val dataSource: PythonDataSourceV2,
    val isStreaming: Boolean,
    val columnsRead: StructType,
    val entry: Option[CatalogEntry]
) extends Table
    with SupportsRead
    with SupportsWrite
    with ReportsSinkMetrics {
  private val sink = new SinkState

  override def name(): String = python.name
  override def schema(): StructType = columnsRead
  override def capabilities(): util.Set[TableCapability] = python.capabilities
  override def toString: String = python.toString

  // Spark takes equal relations of a stream for one source, and equal batches for one cached table.
  override def equals(other: Any): Boolean = other match {
    case table: KlogTable =>
      isSame(table) && table.isStreaming == isStreaming && table.columnsRead == columnsRead
    case _ => false
  }
  private def isSame(table: KlogTable): Boolean =
    (table.python eq python) || (!isStreaming && entry.isDefined && table.entry == entry)
  override def hashCode: Int = if (entry.isDefined) entry.hashCode else System.identityHashCode(python)

  override def newScanBuilder(queryOptions: CaseInsensitiveStringMap): ScanBuilder = {
    val options = withEntry(queryOptions)
    val engine = Engine.ofRead(options)
    // Spark's Python data source plans once, with the options that it gets first. A table of the catalog is
    // planned again when its cache is refreshed, and may have other options elsewhere in a query (4.3).
    val source = if (entry.isDefined) KlogPythonBridge.newSource(dataSource, name) else dataSource
    val tableSchema = KlogPythonBridge.schemaOf(python)
    val planner = new PythonPlanner(source, name, tableSchema, options)
    engine match {
      case Engine.Python(setBy) if isStreaming =>
        new PythonScanBuilder(planner.pythonStreamScan(columnsRead), setBy)
      case Engine.Python(setBy) =>
        new PythonScanBuilder(KlogPythonBridge.scan(source, name, tableSchema, options), setBy)
      case _ if isStreaming => new StreamScanBuilder(planner, columnsRead, engine)
      case _ => new KlogScanBuilder(planner, columnsRead, engine)
    }
  }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new KlogWriteBuilder(
      python.asInstanceOf[SupportsWrite],
      info,
      withEntry(info.options),
      sink
    )

  override def metrics(): util.Map[String, String] = sink.progress.metrics

  private def withEntry(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    entry.fold(options)(TableOptions.of(_, options))

  /** Returns the table of a stream that needs only some columns. */
  def withColumns(names: Set[String]): KlogTable = {
    val columns = StructType(columnsRead.filter(field => names(field.name)))
    new KlogTable(python, dataSource, isStreaming, columns, entry)
  }
}

object KlogTable {
  val Format: String = "klog"
}

/** Leaves a scan to Python, and says so in EXPLAIN. */
private final class PythonScanBuilder(scan: => Scan, reason: String) extends ScanBuilder {
  override def build(): Scan = new DescribedScan(scan, s"engine=python ($reason)")
}
