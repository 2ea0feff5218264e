package klog.store

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.security.UserGroupInformation

/** Who asks Hadoop's servers: with which configuration and options, and as which user.
  *
  * The rule: a client that differs in one of them gets connections of its own. So keys that were replaced, in
  * an option or in the configuration, are used at once.
  *
  * @param configuration
  *   Hadoop's
  * @param settings
  *   the options of the read or the write, which win over the configuration
  * @param id
  *   differs between clients, and shows no value
  */
final class HadoopClient(val configuration: Configuration, val settings: StorageSettings, val id: String)

object HadoopClient {

  /** The settings of file systems, of their clients and of the login. */
  private val Decisive = Seq("fs.", "dfs.", "hadoop.", "ipc.")

  /** For roots on local disk, which ask no server. */
  val ofLocalDisk: HadoopClient =
    new HadoopClient(new Configuration(false), StorageSettings(Map.empty), "")

  def of(configuration: Configuration, settings: StorageSettings): HadoopClient = {
    val user = s"user=${UserGroupInformation.getCurrentUser.getUserName}"
    val options = settings.values.map { case (name, text) => s"storage.$name=$text" }
    val entries = entriesOf(configuration).map { case (name, text) => s"$name=$text" }
    val texts = Seq(user) ++ options.toSeq.sorted ++ entries.toSeq.sorted
    val digest = MessageDigest.getInstance("SHA-256").digest(texts.mkString("\u0000").getBytes(UTF_8))
    new HadoopClient(configuration, settings, HexFormat.of.formatHex(digest))
  }

  /** Returns what decides how Hadoop asks servers. */
  private def entriesOf(configuration: Configuration): Map[String, String] =
    configuration.asScala
      .map(entry => entry.getKey -> entry.getValue)
      .filter { case (name, _) => Decisive.exists(name.startsWith) }
      .toMap
}
