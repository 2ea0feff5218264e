package klog.spark

import org.apache.spark.SPARK_VERSION
import org.apache.spark.api.python.KlogPythonError
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.catalog.KlogCatalogBridge
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

/** What Spark finds when klog's jar is on its class path: it adds the rule to each session.
  *
  * The rule: all or nothing. If this Spark is one that nobody tried, or lacks something that is used, nothing is
  * added, with one warning.
  *
  * @param probe
  *   throws if this Spark lacks something that is used
  */
final class KlogExtensions private[spark] (version: String, probe: () => Unit)
    extends SparkSessionExtensionsProvider
    with Logging {

  /** As Spark makes it. */
  def this() = this(SPARK_VERSION, () => KlogExtensions.probe())

  override def apply(extensions: SparkSessionExtensions): Unit =
    if (!SparkVersions.isTried(version)) logWarning(SparkVersions.warning(version))
    else
      try {
        probe()
        extensions.injectPostHocResolutionRule(new KlogRule(_))
        extensions.injectPlannerStrategy(_ => WriteDistribution)
      } catch {
        case exc @ (_: LinkageError | _: ReflectiveOperationException) =>
          logWarning(s"klog's jar does not fit this Spark, so Python reads the format klog: $exc")
      }
}

private object KlogExtensions {

  /** Throws if this Spark lacks something that is used. */
  def probe(): Unit = {
    KlogPythonBridge.probe()
    KlogPythonError.probe()
    KlogCatalogBridge.probe()
    KlogRule.probe()
    WriteDistribution.probe()
  }
}

/** The versions of Spark that the shim was tried on: it uses classes that are not public. */
object SparkVersions {
  private val Tried = Seq("4.2.", "4.3.")

  /** Set to true to use the shim on another version of Spark. */
  private[spark] val Force = "klog.jvm.force"

  def isTried(version: String): Boolean =
    Tried.exists(version.startsWith) || java.lang.Boolean.getBoolean(Force)

  def warning(version: String): String =
    s"klog's jar was tried on Spark 4.2 and 4.3, and this is $version: Python reads the format klog. " +
      s"-D$Force=true uses the jar all the same"
}
