package klog.spark

import java.io.{PrintWriter, StringWriter}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.api.python.KlogPythonError
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import scala.jdk.CollectionConverters._

import klog.slice.Slice
import klog.store.{SegmentStores, StorageSettings}

/** The stores of one read or write, as they travel to executors: the settings, and Hadoop's configuration if a root
  * is not on local disk.
  */
final case class TaskStores(
    settings: StorageSettings,
    configuration: Option[Broadcast[SerializableConfiguration]]
) {

  /** Returns the stores, in the process that calls. */
  def toStores: SegmentStores =
    new SegmentStores(configuration.fold(new Configuration(false))(_.value.value), settings)

  /** Returns a text without the secrets of the settings and of URLs. */
  def withoutSecrets(text: String): String =
    settings.withoutSecrets(text, configuration.fold(new Configuration(false))(_.value.value))

  /** Returns the error of a task as Python's engine raises it, without secrets. A cause whose own text has one is
    * not shown with it.
    *
    * @param pythonClass
    *   the class of the error, in `klog.errors`
    */
  def errorOf(pythonClass: String, sentence: String, cause: Throwable): RuntimeException =
    KlogPythonError.of(pythonClass, withoutSecrets(sentence), if (showsSecret(cause)) null else cause)

  /** Returns whether the text of an error, or of its causes, has a secret. */
  def showsSecret(error: Throwable): Boolean = {
    val trace = new StringWriter
    error.printStackTrace(new PrintWriter(trace, true))
    withoutSecrets(trace.toString) != trace.toString
  }

  /** Returns whether roots of these schemes can be read: those on local disk need no configuration. */
  def cover(schemes: Seq[String]): Boolean = configuration.isDefined || schemes.forall(SegmentStores.isLocal)
}

object TaskStores {

  /** The file that says which version of klog's layout a root has. */
  private val Format = "_klog/format.json"

  /** Returns why the JVM does not read roots of these schemes; empty if it does.
    *
    * @param first
    *   the first slice of the read, which has to be within reach
    */
  def refusal(schemes: Seq[String], first: => Option[Slice], options: CaseInsensitiveStringMap): String =
    refusalOf(schemes, first.map(slice => (slice.root, slice.path)), options)

  /** Returns why the JVM does not write to a root; empty if it does.
    *
    * What says so is whether the file can be read, or is not there yet, that each root of klog's has.
    */
  def writeRefusal(root: String, options: CaseInsensitiveStringMap): String = {
    val scheme = SegmentStores.scheme(root)
    val refusal = SegmentStores.writeRefusal(scheme)
    if (refusal.nonEmpty) refusal
    else refusalOf(Seq(scheme), Some((root, s"${root.stripSuffix("/")}/$Format")), options)
  }

  private def refusalOf(
      schemes: Seq[String],
      file: => Option[(String, String)],
      options: CaseInsensitiveStringMap
  ): String = {
    val stores = new SegmentStores(hadoopConfiguration, settingsOf(options))
    val refusals = schemes.iterator.map(stores.refusal).filter(_.nonEmpty)
    if (refusals.hasNext) refusals.next()
    else if (schemes.forall(SegmentStores.isLocal)) ""
    else file.fold("") { case (root, path) => stores.accessError(root, path) }
  }

  /** Returns what decides the stores of a root, besides its options: Hadoop's configuration, if it is used. */
  def configurationOf(scheme: String): Map[String, String] =
    if (SegmentStores.isLocal(scheme)) Map.empty
    else hadoopConfiguration.asScala.map(entry => entry.getKey -> entry.getValue).toMap

  /** Returns the stores of roots of these schemes. */
  def of(schemes: Seq[String], options: CaseInsensitiveStringMap): TaskStores = {
    val context = SparkContext.getOrCreate()
    val configuration = Option.unless(schemes.forall(SegmentStores.isLocal))(
      context.broadcast(new SerializableConfiguration(hadoopConfiguration))
    )
    TaskStores(settingsOf(options), configuration)
  }

  private def hadoopConfiguration: Configuration = SparkContext.getOrCreate().hadoopConfiguration

  private def settingsOf(options: CaseInsensitiveStringMap): StorageSettings =
    StorageSettings.of(options.asScala)
}
