package klog.store

import java.io.InterruptedIOException

import org.apache.hadoop.conf.Configuration

/** A root that Hadoop cannot read is left to Python with a reason, and is not tried at every plan. */
class HadoopAccessSuite extends munit.FunSuite {
  import FailingFileSystem.callsOf

  private val NoSettings = StorageSettings(Map.empty)

  private def configured(failure: String, message: String = "no"): Configuration = {
    val configuration = new Configuration
    configuration.set("fs.s3a.impl", classOf[FailingFileSystem].getName)
    configuration.set("fs.klog-test.failure", failure)
    configuration.set("fs.klog-test.message", message)
    configuration
  }

  private def accessError(
      bucket: String,
      configuration: Configuration,
      settings: StorageSettings = NoSettings
  ): String =
    new SegmentStores(HadoopClient.of(configuration, settings))
      .accessError(s"s3://$bucket/root", s"s3://$bucket/root/a.log")

  private def probe(bucket: String, configuration: Configuration): String =
    HadoopStore.probe(
      s"s3://$bucket/root",
      s"s3://$bucket/root/a.log",
      HadoopClient.of(configuration, NoSettings)
    )

  for {
    (failure, calls) <- Seq(
      "open IOException" -> ((1, 1, 1)),
      "open NoSuchMethodError" -> ((1, 1, 1)),
      "open SocketTimeoutException" -> ((1, 1, 1)),
      "initialize IOException" -> ((1, 0, 1)),
      "initialize NoSuchMethodError" -> ((1, 0, 0)),
      "initialize FileNotFoundException" -> ((1, 0, 1))
    )
  }
    test(s"$failure: one line says why, and the root is tried once") {
      val bucket = failure.toLowerCase.replace(' ', '-')
      val errorClass = failure.split(' ')(1)
      val configuration = configured(failure, "void S3Client.use()\n\tat Client.java")
      for (_ <- 1 to 3) {
        val reason = accessError(bucket, configuration)
        assert(
          reason.matches(s"Hadoop cannot read s3://$bucket/root: java\\.[a-z.]*$errorClass: void .*\\(\\)"),
          reason
        )
      }
      assertEquals(callsOf(bucket), calls)
    }

  for (failure <- Seq("", "open FileNotFoundException"))
    test(s"a root that Hadoop reaches is tried once, and stays connected: $failure") {
      val bucket = s"reached-${failure.length}"
      for (_ <- 1 to 3) assertEquals(accessError(bucket, configured(failure)), "")
      HadoopStore.of(s"s3://$bucket/root", HadoopClient.of(configured(failure), NoSettings))
      assertEquals(callsOf(bucket), (1, 1, 0))
    }

  test("other settings are tried, too") {
    val failing = configured("open IOException")
    for (region <- Seq("a", "b", "a"))
      assert(accessError("settings", failing, StorageSettings(Map("region" -> region))).nonEmpty)
    assertEquals(callsOf("settings"), (2, 2, 2))
  }

  test("another configuration is tried at once, with a connection of its own") {
    assert(accessError("repaired", configured("open IOException")).nonEmpty)
    assertEquals(accessError("repaired", configured("")), "")
    val session = configured("")
    session.set("spark.sql.shuffle.partitions", "7")
    assertEquals(accessError("repaired", session), "")
    assertEquals(callsOf("repaired"), (2, 2, 1))
  }

  test("a connection is shared by those who ask in the same way") {
    assertEquals(probe("shared", configured("")), "")
    assertEquals(probe("shared", configured("")), "")
    assertEquals(callsOf("shared"), (1, 2, 0))
  }

  test("an interrupted try is not remembered") {
    for (_ <- 1 to 2)
      intercept[InterruptedIOException](accessError("interrupted", configured("open InterruptedIOException")))
    assertEquals(callsOf("interrupted"), (2, 2, 2))
  }

  test("a reason shows no secret of the options or the configuration") {
    val configuration = configured("open IOException", "key canary1, token canary2")
    configuration.set("fs.s3a.session.token", "canary2")
    val settings = StorageSettings(Map("secret_access_key" -> "canary1"))
    val reason = accessError("secrets", configuration, settings)
    assert(reason.endsWith("IOException: key ***, token ***"), reason)
  }
}
