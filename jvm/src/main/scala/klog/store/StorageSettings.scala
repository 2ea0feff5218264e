package klog.store

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

/** The options `storage.*` of a read, in the words of Hadoop's file systems.
  *
  * The rule: what a read does not set comes from Hadoop's configuration. What neither sets is Hadoop's
  * default, but for two settings of S3: how a file is read, and that an endpoint of the read is addressed by
  * the path, as klog's client does it. No value is ever shown.
  *
  * @param values
  *   name, without `storage.`, and text of each option
  */
final case class StorageSettings(values: Map[String, String]) {
  import StorageSettings._

  override def toString: String = s"StorageSettings(${values.keys.toSeq.sorted.mkString(", ")})"

  /** Returns an option that Hadoop has no setting for; Python reads then. */
  def unknown: Option[String] = values.keys.find(name => !S3Names.contains(name) && !Others(name))

  /** The user of HDFS, if one is set. */
  def user: Option[String] = values.get("user")

  /** Returns a configuration with the options. They win over the settings of the bucket, too, which S3's client
    * prefers to those of all.
    *
    * @param server
    *   the authority of a root: on S3, its bucket
    */
  def applyTo(configuration: Configuration, server: String): Configuration = {
    val configured = new Configuration(configuration)
    def set(setting: String, text: String): Unit = {
      configured.unset(s"fs.s3a.bucket.$server.${setting.stripPrefix("fs.s3a.")}")
      configured.set(setting, text)
    }
    for ((name, text) <- values; setting <- S3Names.get(name)) set(setting, text)
    if (!isSet(configured, S3StreamType)) configured.set(S3StreamType, "classic")
    if (values.contains("endpoint") && !isSet(configured, PathStyle)) configured.set(PathStyle, "true")
    if (values.get("allow_http").exists(_.equalsIgnoreCase("true"))) {
      set("fs.s3a.connection.ssl.enabled", "false")
    }
    provider.foreach(set("fs.s3a.aws.credentials.provider", _))
    configured
  }

  /** Returns a text without the secrets of the options, of a configuration (those of one bucket too) and of
    * the environment, and without those of URLs: passwords and queries, which may have tokens (as
    * `klog.errors.without_passwords`).
    */
  def withoutSecrets(text: String, configuration: Configuration): String =
    (SecretNames.flatMap(values.get) ++ secretsOf(configuration) ++ SecretVariables.flatMap(sys.env.get))
      .filter(_.nonEmpty)
      .sortBy(-_.length)
      .foldLeft(text)(_.replace(_, "***"))
      .replaceAll(UserAndPassword, "***@")
      .replaceAll(Query, "$1***")

  private def provider: Option[String] =
    if (values.get("anonymous").exists(_.equalsIgnoreCase("true"))) Some(Anonymous)
    else if (values.contains("session_token")) Some(Temporary)
    else if (values.contains("access_key_id")) Some(Simple)
    else None
}

object StorageSettings {
  private val Prefix = "storage."
  private val Providers = "org.apache.hadoop.fs.s3a"
  private val Anonymous = s"$Providers.AnonymousAWSCredentialsProvider"
  private val Temporary = s"$Providers.TemporaryAWSCredentialsProvider"
  private val Simple = s"$Providers.SimpleAWSCredentialsProvider"
  private val Others = Set("user", "anonymous", "allow_http")

  /** `classic` sends one request for a file that is read front to back; the default of Hadoop 3.5 sends one
    * for its length, and one for each 8 MiB, which it keeps.
    */
  private val S3StreamType = "fs.s3a.input.stream.type"
  private val PathStyle = "fs.s3a.path.style.access"
  private val S3Names = Map(
    "endpoint" -> "fs.s3a.endpoint",
    "region" -> "fs.s3a.endpoint.region",
    "access_key_id" -> "fs.s3a.access.key",
    "secret_access_key" -> "fs.s3a.secret.key",
    "session_token" -> "fs.s3a.session.token",
    "path_style" -> PathStyle
  )
  private val SecretNames = Seq("secret_access_key", "session_token")
  private val SecretSettings =
    "fs\\.s3a\\.(.*\\.)?(secret\\.key|session\\.token|([^.]*-)?encryption\\.key|proxy\\.password)"
  private val SecretVariables = Seq("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
  private val UserAndPassword = "(?<=://)[^/\\s]*:[^/\\s]*@"
  private val Query = "(://[^\\s\"<>?]*\\?)[\\w.~%-]+=[^\\s\"<>]*"

  private def secretsOf(configuration: Configuration): Seq[String] =
    configuration.asScala.map(_.getKey).toSeq.filter(_.matches(SecretSettings)).map(configuration.get)

  /** Returns whether somebody has set a setting: it is not there by Hadoop's own defaults alone. */
  private def isSet(configuration: Configuration, name: String): Boolean =
    Option(configuration.getPropertySources(name)).exists(_.exists(_ != "core-default.xml"))

  /** Returns the storage options among all options, whose names are in lower case. */
  def of(options: Iterable[(String, String)]): StorageSettings =
    StorageSettings(options.collect {
      case (name, text) if name.startsWith(Prefix) => name.substring(Prefix.length) -> text
    }.toMap)
}
