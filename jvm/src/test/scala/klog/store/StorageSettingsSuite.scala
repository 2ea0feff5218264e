package klog.store

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import org.apache.hadoop.conf.Configuration

/** The options of a read become Hadoop's settings, and reach the server as klog's own client does. */
class StorageSettingsSuite extends munit.FunSuite {
  private val endpoint = "endpoint" -> "http://storage.example:9000"

  private def configured(options: (String, String)*): Configuration =
    StorageSettings(options.toMap).applyTo(new Configuration(false), "b")

  test("an endpoint is addressed by the path, unless the read says otherwise") {
    assertEquals(configured(endpoint).get(pathStyle), "true")
    assertEquals(configured(endpoint, "path_style" -> "false").get(pathStyle), "false")
    assertEquals(configured("region" -> "eu-central-1").get(pathStyle), null)
  }

  private val pathStyle = "fs.s3a.path.style.access"
  private val streamType = "fs.s3a.input.stream.type"

  /** Returns a configuration as an executor gets it: Hadoop's defaults, and what the user has set. */
  private def sent(values: (String, String)*): Configuration = {
    val configuration = new Configuration
    for ((name, text) <- values) configuration.set(name, text, "Set by Spark")
    val bytes = new ByteArrayOutputStream
    configuration.write(new DataOutputStream(bytes))
    val copy = new Configuration(false)
    copy.readFields(new DataInputStream(new ByteArrayInputStream(bytes.toByteArray)))
    copy
  }

  test("Hadoop's defaults give way to klog's") {
    val configured = StorageSettings(Map(endpoint)).applyTo(sent(), "b")
    assertEquals(sent().get(pathStyle), "false")
    assertEquals(configured.get(pathStyle), "true")
    assertEquals(configured.get(streamType), "classic")
  }

  test("the user's configuration wins over what the options do not say") {
    val configuration = sent(pathStyle -> "false", streamType -> "prefetch")
    val configured = StorageSettings(Map(endpoint)).applyTo(configuration, "b")
    assertEquals(configured.get(pathStyle), "false")
    assertEquals(configured.get(streamType), "prefetch")
    val options = StorageSettings(Map(endpoint, "path_style" -> "true"))
    assertEquals(options.applyTo(configuration, "b").get(pathStyle), "true")
  }

  test("options win over the settings of their bucket alone") {
    val changed = Seq("fs.s3a.bucket.b.endpoint")
    val same = Seq(
      "fs.s3a.bucket.b.path.style.access",
      "fs.s3a.bucket.b.endpoint.region",
      "fs.s3a.bucket.b.assumed.role.sts.endpoint",
      "fs.s3a.bucket.other.endpoint"
    )
    val configuration = sent((changed ++ same).map(_ -> "set"): _*)
    val configured = StorageSettings(Map(endpoint)).applyTo(configuration, "b")
    assertEquals(changed.map(configured.get), Seq(null))
    assertEquals(same.map(configured.get), same.map(_ => "set"))
    assertEquals(configured.get(pathStyle), "true")
  }

  test("keys bring the provider that uses them") {
    val keys = Seq("access_key_id" -> "id", "secret_access_key" -> "secret")
    val provider = "fs.s3a.aws.credentials.provider"
    assertEquals(configured(keys: _*).get("fs.s3a.secret.key"), "secret")
    assert(configured(keys: _*).get(provider).endsWith("SimpleAWSCredentialsProvider"))
    val session = keys :+ ("session_token" -> "token")
    assert(configured(session: _*).get(provider).endsWith("TemporaryAWSCredentialsProvider"))
    assertEquals(configured(endpoint).get(provider), null)
  }

  test("options without a setting are named, and values are not shown") {
    val settings = StorageSettings(Map("profile" -> "p", "secret_access_key" -> "canary"))
    assertEquals(settings.unknown, Some("profile"))
    assert(!settings.toString.contains("canary"))
  }
}
