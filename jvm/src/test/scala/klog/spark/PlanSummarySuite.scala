package klog.spark

import java.util.Collections.{emptyList, emptyMap}
import java.util.{Map => JavaMap}

import net.razorvine.pickle.Pickler

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A plan of another version of klog is left to Python, with the reason. */
class PlanSummarySuite extends munit.FunSuite {
  private val noOptions = new CaseInsensitiveStringMap(emptyMap())

  private def summary(format: Int, more: (String, AnyRef)*): PlanSummary = {
    val values = new java.util.HashMap[String, AnyRef]
    values.put("format", Int.box(format))
    values.put("pythonReason", "")
    values.put("arePathsAscii", Boolean.box(true))
    for (name <- Seq("segmentCount", "sizeBytes", "totalSegmentCount", "totalSizeBytes", "offsetCount"))
      values.put(name, Int.box(7))
    values.put("taskPartitions", emptyList())
    values.put("aggregates", emptyMap())
    for ((name, value) <- more) values.put(name, value)
    PlanSummary.of(new Pickler().dumps(JavaMap.of("value", values)))
  }

  test("a plan of this version is the JVM's") {
    val files = JavaMap.of("/root", "/root/t-0/0.log")
    assertEquals(summary(2, "files" -> files).refusal(noOptions), "")
  }

  for (format <- Seq(1, 3))
    test(s"a plan of format $format is Python's") {
      val reason = summary(format).refusal(noOptions)
      assert(reason.contains(s"klog's Python makes format $format: start Spark with the jar"), reason)
    }
}
