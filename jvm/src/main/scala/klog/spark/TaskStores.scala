package klog.spark

import java.io.{PrintWriter, StringWriter}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.api.python.KlogPythonError
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import scala.jdk.CollectionConverters._

import klog.store.{HadoopClient, SegmentStores, StorageSettings}

/** The stores of one read or write, as they travel to executors: the settings, and Hadoop's configuration if a root
  * is not on local disk.
  *
  * @param clientId
  *   that of `HadoopClient`
  */
final case class TaskStores(
    settings: StorageSettings,
    configuration: Option[Broadcast[SerializableConfiguration]],
    clientId: String
) {

  /** Returns the stores, in the process that calls. */
  def toStores: SegmentStores = configuration.fold(new SegmentStores)(sent =>
    new SegmentStores(new HadoopClient(sent.value.value, settings, clientId))
  )

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
}

object TaskStores {

  /** The file that says which version of klog's layout a root has. */
  private val Format = "_klog/format.json"

  /** Returns why the JVM does not write to a root; empty if it does.
    *
    * What says so is whether the file can be read, or is not there yet, that each root of klog's has.
    */
  def writeRefusal(root: String, options: CaseInsensitiveStringMap): String = {
    val scheme = SegmentStores.scheme(root)
    val refusal = SegmentStores.writeRefusal(scheme)
    if (refusal.nonEmpty) refusal
    else this.refusal(Map(root -> s"${root.stripSuffix("/")}/$Format"), options)
  }

  /** Returns why the JVM does not read some roots; empty if it does.
    *
    * @param files
    *   by root a file of it, which has to be within reach
    */
  def refusal(files: Map[String, String], options: CaseInsensitiveStringMap): String = {
    val stores = new SegmentStores(HadoopClient.of(hadoopConfiguration, settingsOf(options)))
    val refusals = SegmentStores.schemes(files.keys).iterator.map(stores.refusal) ++
      files.iterator.map { case (root, path) => stores.accessError(root, path) }
    refusals.find(_.nonEmpty).getOrElse("")
  }

  /** Returns the stores of roots of these schemes.
    *
    * @param last
    *   earlier ones, which are returned if nothing has changed since: they have been sent already
    */
  def of(
      schemes: Seq[String],
      options: CaseInsensitiveStringMap,
      last: Option[TaskStores] = None
  ): TaskStores = {
    val settings = settingsOf(options)
    if (schemes.forall(SegmentStores.isLocal)) TaskStores(settings, None, "")
    else {
      val client = HadoopClient.of(hadoopConfiguration, settings)
      last.filter(_.clientId == client.id).getOrElse {
        val sent = SparkContext.getOrCreate().broadcast(new SerializableConfiguration(client.configuration))
        TaskStores(settings, Some(sent), client.id)
      }
    }
  }

  /** Returns Hadoop's configuration with what the session has set, as Spark's own formats see it. */
  private def hadoopConfiguration: Configuration = SparkSession.active.sessionState.newHadoopConf()

  private def settingsOf(options: CaseInsensitiveStringMap): StorageSettings =
    StorageSettings.of(options.asScala)
}
