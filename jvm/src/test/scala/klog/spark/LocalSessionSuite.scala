package klog.spark

import org.apache.spark.sql.classic.SparkSession

/** Tests that share a session in this process, which is started when a test asks for it. */
abstract class LocalSessionSuite extends munit.FunSuite {
  protected lazy val session: SparkSession =
    SparkSession
      .builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "127.0.0.1")
      .getOrCreate()

  override def afterAll(): Unit = session.stop() // codespell:ignore
}
