package klog.spark

import scala.concurrent.duration.{Duration, DurationInt}

import org.apache.spark.sql.classic.SparkSession

/** Tests that share a session in this process, which is started when a test asks for it. */
abstract class LocalSessionSuite extends munit.FunSuite {

  /** A session takes a minute to start where other suites have the cores; munit's limit is 30 s. */
  override val munitTimeout: Duration = 5.minutes

  protected lazy val session: SparkSession =
    SparkSession
      .builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "127.0.0.1")
      .getOrCreate()

  override def afterAll(): Unit = session.stop() // codespell:ignore
}
