package klog.spark

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, SupportsWrite, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.execution.datasources.v2.python.{KlogPythonBridge, PythonDataSourceV2}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Python's table of the format `klog`, with a scan that the JVM may read. Writes are Python's.
  *
  * @param python
  *   the table that Spark has made
  * @param columnsRead
  *   the columns of a stream that the query uses; a batch's are pruned by its scan builder
  */
final class KlogTable(
    val python: Table,
    val dataSource: PythonDataSourceV2,
    val isStreaming: Boolean,
    val columnsRead: StructType
) extends Table
    with SupportsRead
    with SupportsWrite {

  override def name(): String = python.name
  override def schema(): StructType = columnsRead
  override def capabilities(): util.Set[TableCapability] = python.capabilities
  override def toString: String = python.toString

  // Spark takes equal relations of a stream for one source.
  override def equals(other: Any): Boolean = other match {
    case table: KlogTable =>
      (table.python eq python) && table.isStreaming == isStreaming && table.columnsRead == columnsRead
    case _ => false
  }
  override def hashCode: Int = System.identityHashCode(python)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val engine = Engine.of(options)
    val planner = new PythonPlanner(dataSource, python.name, KlogPythonBridge.schemaOf(python), options)
    if (engine == Engine.Python && isStreaming) new PythonScanBuilder(planner.pythonStreamScan(columnsRead))
    else if (engine == Engine.Python) new PythonScanBuilder(pythonScan(options))
    else if (isStreaming) new StreamScanBuilder(planner, columnsRead, engine)
    else new KlogScanBuilder(planner, columnsRead, engine)
  }

  private def pythonScan(options: CaseInsensitiveStringMap): Scan =
    python.asInstanceOf[SupportsRead].newScanBuilder(options).build()

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    python.asInstanceOf[SupportsWrite].newWriteBuilder(info)

  /** Returns the table of a stream that needs only some columns. */
  def withColumns(names: Set[String]): KlogTable =
    new KlogTable(python, dataSource, isStreaming, StructType(columnsRead.filter(field => names(field.name))))
}

object KlogTable {
  val Format: String = "klog"
}

/** Leaves a scan to Python, and says so in EXPLAIN. */
private final class PythonScanBuilder(scan: => Scan) extends ScanBuilder {
  override def build(): Scan = new DescribedScan(scan, "engine=python (option engine)")
}
