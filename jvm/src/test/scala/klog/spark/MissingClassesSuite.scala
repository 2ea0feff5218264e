package klog.spark

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

/** On a Spark that lacks a class which klog uses and Spark does not promise, nothing of klog is installed: it would
  * fail later, in the middle of a query.
  */
class MissingClassesSuite extends munit.FunSuite {
  import MissingClassesSuite._

  test("klog is installed if nothing is missing") {
    assert(isInstalled(missing = "none"))
  }

  for (name <- Unpromised)
    test(s"without $name nothing is installed") {
      assert(classOf[SparkSessionExtensions].getClassLoader.loadClass(s"org.apache.spark.$name") != null)
      assert(!isInstalled(s"org.apache.spark.$name"))
    }

  test("each file in Spark's packages has a probe") {
    val folder = Paths.get("jvm/src/main/scala/org/apache/spark")
    val files = Using.resource(Files.walk(folder))(_.iterator.asScala.filter(Files.isRegularFile(_)).toList)
    assert(files.length > 5)
    for (file <- files) assert(Files.readString(file).contains("def probe(): Unit"), file)
  }
}

object MissingClassesSuite {
  private val Unpromised = Seq(
    "ContextCleaner",
    "MapOutputTracker",
    "api.python.PythonException",
    "api.python.PythonFunction",
    "api.python.PythonWorker",
    "api.python.PythonWorkerUtils$",
    "api.python.SpecialLengths$",
    "rdd.ShuffledRDDPartition",
    "scheduler.MapStatus",
    "serializer.SerializerManager",
    "shuffle.BlockStoreShuffleReader",
    "shuffle.IndexShuffleBlockResolver",
    "shuffle.ShuffleManager",
    "shuffle.ShuffleWriteProcessor",
    "shuffle.sort.SortShuffleManager",
    "shuffle.sort.io.LocalDiskShuffleMapOutputWriter",
    "sql.catalyst.analysis.NamedRelation",
    "sql.catalyst.analysis.ResolvedTable",
    "sql.catalyst.catalog.SessionCatalog",
    "sql.catalyst.plans.logical.Aggregate",
    "sql.catalyst.plans.logical.AnalysisHelper$",
    "sql.catalyst.plans.logical.AppendData",
    "sql.catalyst.plans.logical.CreateTableAsSelect",
    "sql.catalyst.plans.logical.Filter",
    "sql.catalyst.plans.logical.Project",
    "sql.catalyst.plans.logical.SubqueryAlias",
    "sql.catalyst.plans.logical.TableSpec",
    "sql.catalyst.plans.logical.V2WriteCommand",
    "sql.catalyst.plans.physical.HashPartitioningLike",
    "sql.catalyst.plans.physical.PartitioningCollection",
    "sql.catalyst.plans.physical.RangePartitioning",
    "sql.catalyst.plans.physical.ShufflePartitionIdPassThrough",
    "sql.catalyst.plans.physical.SinglePartition$",
    "sql.catalyst.streaming.StreamingRelationV2",
    "sql.catalyst.streaming.WriteToStream",
    "sql.errors.QueryCompilationErrors$",
    "sql.execution.UnaryExecNode",
    "sql.execution.datasources.v2.DataSourceV2Relation",
    "sql.execution.datasources.v2.DataSourceV2Utils$",
    "sql.execution.datasources.v2.WriteToDataSourceV2",
    "sql.execution.datasources.v2.python.PythonDataSourceV2",
    "sql.execution.datasources.v2.python.PythonScan",
    "sql.execution.datasources.v2.python.PythonTable",
    "sql.execution.python.streaming.PythonStreamingSourceRunner",
    "sql.execution.streaming.sources.MicroBatchWrite",
    "sql.internal.connector.SupportsStreamingUpdateAsAppend",
    "storage.BlockManager",
    "storage.DiskBlockManager",
    "storage.TimeTrackingOutputStream"
  )

  /** Returns whether klog adds something to a session of a Spark without a class. */
  private def isInstalled(missing: String): Boolean = {
    val klog = new Without(missing).loadClass(classOf[KlogExtensions].getName).getDeclaredConstructor()
    val provider = klog.newInstance().asInstanceOf[SparkSessionExtensionsProvider]
    var count = 0
    provider(new SparkSessionExtensions {
      override def injectPostHocResolutionRule(builder: RuleBuilder): Unit = count += 1
      override def injectPlannerStrategy(builder: StrategyBuilder): Unit = count += 1
    })
    count > 0
  }

  /** Loads klog's classes again, so that what they refer to is asked of it, and one class is missing. */
  private final class Without(missing: String) extends ClassLoader(classOf[KlogExtensions].getClassLoader) {
    private val folder =
      Paths.get(classOf[KlogExtensions].getProtectionDomain.getCodeSource.getLocation.toURI)

    override def loadClass(name: String, isResolved: Boolean): Class[_] =
      getClassLoadingLock(name).synchronized {
        val file = folder.resolve(name.replace('.', '/') + ".class")
        if (name == missing) throw new ClassNotFoundException(name)
        else if (Files.exists(file)) Option(findLoadedClass(name)).getOrElse(define(name, file))
        else super.loadClass(name, isResolved)
      }

    private def define(name: String, file: Path): Class[_] = {
      val bytes = Files.readAllBytes(file)
      defineClass(name, bytes, 0, bytes.length)
    }
  }
}
