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
  */
final class HadoopClient(val configuration: Configuration, val settings: StorageSettings) {
  import HadoopClient._

  /** Tells clients apart; no value can be found out from it. */
  lazy val id: String = {
    val user = s"user=${UserGroupInformation.getCurrentUser.getUserName}"
    val options = settings.values.map { case (name, text) => s"storage.$name=$text" }
    val texts = Seq(user) ++ options.toSeq.sorted ++ entriesOf(configuration).map(_.toString).toSeq.sorted
    val digest = MessageDigest.getInstance("SHA-256").digest(texts.mkString("\u0000").getBytes(UTF_8))
    HexFormat.of.formatHex(digest)
  }
}

object HadoopClient {

  /** Returns what decides how Hadoop asks servers. A session adds its own conf, which does not. */
  def entriesOf(configuration: Configuration): Map[String, String] =
    configuration.asScala
      .map(entry => entry.getKey -> entry.getValue)
      .filterNot(_._1.startsWith("spark."))
      .toMap
}
