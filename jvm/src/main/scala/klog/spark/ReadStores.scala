package klog.spark

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import scala.jdk.CollectionConverters._

import klog.slice.Slice
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

  /** Returns whether roots of these schemes can be read: those on local disk need no configuration. */
  def cover(schemes: Seq[String]): Boolean = configuration.isDefined || schemes.forall(SegmentStores.isLocal)
}

object ReadStores {

  /** Returns why the JVM does not read roots of these schemes; empty if it does.
    *
    * @param first
    *   the first slice of the read, which has to be within reach
    */
  def refusal(schemes: Seq[String], first: => Option[Slice], options: CaseInsensitiveStringMap): String = {
    val stores = new SegmentStores(hadoopConfiguration, settingsOf(options))
    val refusals = schemes.iterator.map(stores.refusal).filter(_.nonEmpty)
    if (refusals.hasNext) refusals.next()
    else if (schemes.forall(SegmentStores.isLocal)) ""
    else first.fold("")(slice => stores.accessError(slice.root, slice.path))
  }

  /** Returns the stores of roots of these schemes. */
  def of(schemes: Seq[String], options: CaseInsensitiveStringMap): ReadStores = {
    val context = SparkContext.getOrCreate()
    val configuration = Option.unless(schemes.forall(SegmentStores.isLocal))(
      context.broadcast(new SerializableConfiguration(hadoopConfiguration))
    )
    ReadStores(settingsOf(options), configuration)
  }

  private def hadoopConfiguration: Configuration = SparkContext.getOrCreate().hadoopConfiguration

  private def settingsOf(options: CaseInsensitiveStringMap): StorageSettings =
    StorageSettings.of(options.asScala)
}
