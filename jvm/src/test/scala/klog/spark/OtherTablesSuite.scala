package klog.spark

import java.util.{Collections, EnumSet, Set => JavaSet}
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.connector.catalog.{Identifier, KlogCatalogBridge, Table, TableCapability}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Tables of other formats stay as they are, also those that Spark's own catalog does not know: Delta and Iceberg
  * have a session catalog of their own.
  */
class OtherTablesSuite extends LocalSessionSuite {

  private val table = new Table {
    override def name(): String = "elsewhere"
    override def schema(): StructType = new StructType().add("id", "int")
    override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_WRITE)
  }
  private lazy val catalog = session.sessionState.catalogManager.currentCatalog
  private val identifier = Identifier.of(Array("delta"), "/path")

  private def isLeft(plan: LogicalPlan): Boolean =
    new KlogRule(session, new AtomicBoolean)(plan) eq plan

  test("a write is left") {
    val relation = DataSourceV2Relation.create(table, Some(catalog), Some(identifier))
    assert(KlogCatalogBridge.isSessionCatalog(catalog))
    assert(isLeft(AppendData.byPosition(relation, relation)))
    assert(isLeft(relation))
  }

  test("a stream is left") {
    val (options, output) = (new CaseInsensitiveStringMap(Collections.emptyMap()), Nil)
    assert(
      isLeft(StreamingRelationV2(None, "x", table, options, output, Some(catalog), Some(identifier), None))
    )
  }
}
