package klog.spark

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import scala.jdk.CollectionConverters._

import klog.store.{SegmentStores, StorageSettings}

/** The stores of one read, as they travel to executors: the settings, and Hadoop's configuration if a root
  * is not on local disk.
  */
final case class ReadStores(
    settings: StorageSettings,
    configuration: Option[Broadcast[SerializableConfiguration]]
) {

  /** Returns the stores, in the process that calls. */
  def toStores: SegmentStores =
    new SegmentStores(configuration.fold(new Configuration(false))(_.value.value), settings)
}

object ReadStores {

  /** Returns why the JVM does not read roots of these schemes; empty if it does. */
  def refusal(schemes: Seq[String], options: CaseInsensitiveStringMap): String = {
    val stores = new SegmentStores(hadoopConfiguration, settingsOf(options))
    schemes.map(stores.refusal).find(_.nonEmpty).getOrElse("")
  }

  /** Returns the stores of roots of these schemes. */
  def of(schemes: Seq[String], options: CaseInsensitiveStringMap): ReadStores = {
    val isLocal = schemes.forall(scheme => scheme.isEmpty || scheme == "file")
    val context = SparkContext.getOrCreate()
    val configuration =
      Option.unless(isLocal)(context.broadcast(new SerializableConfiguration(hadoopConfiguration)))
    ReadStores(settingsOf(options), configuration)
  }

  private def hadoopConfiguration: Configuration = SparkContext.getOrCreate().hadoopConfiguration

  private def settingsOf(options: CaseInsensitiveStringMap): StorageSettings =
    StorageSettings.of(options.asScala)
}
