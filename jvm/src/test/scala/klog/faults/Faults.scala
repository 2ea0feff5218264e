package klog.faults

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.{SparkContext, TaskContext}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** The faults of `tests/spark_faults/hooks/sitecustomize.py`, for tasks that the JVM runs.
  *
  * The rule: the same files, points, facts and acts. `kill` has Spark kill the task, because its process is
  * the driver's in local mode; `executor` kills the process.
  */
object Faults {
  private val folder = Option(System.getenv("KLOG_FAULTS")).map(Paths.get(_))
  private val mapper = new ObjectMapper
  private val StepMs = 20L

  /** Runs the faults of a point. */
  def reached(at: String, facts: Map[String, Any]): Unit =
    for (path <- folder.toSeq.flatMap(faultsIn)) {
      val fault = mapper.readTree(path.toFile)
      if (isAt(fault.get("where"), facts + ("at" -> at)) && claim(path)) act(fault, path)
    }

  private def faultsIn(folder: Path): Seq[Path] =
    Using.resource(Files.newDirectoryStream(folder, "*.json"))(_.asScala.toSeq.sortBy(_.toString))

  private def isAt(where: JsonNode, facts: Map[String, Any]): Boolean =
    where.properties.asScala.forall(fact => facts.get(fact.getKey).exists(_.toString == fact.getValue.asText))

  /** Claims a fault; returns whether this task is the first to reach it. */
  private def claim(path: Path): Boolean = {
    val pid = ProcessHandle.current.pid.toString
    val staged = Files.write(other(path, s"$pid-${Thread.currentThread.getId}"), pid.getBytes(UTF_8))
    try {
      Files.createLink(other(path, "fired"), staged)
      true
    } catch { case _: FileAlreadyExistsException => false }
    finally Files.delete(staged)
  }

  private def other(path: Path, suffix: String): Path =
    path.resolveSibling(s"${path.getFileName.toString.stripSuffix("json")}$suffix")

  private def act(fault: JsonNode, path: Path): Unit = fault.get("act").asText match {
    case "park" => while (!Files.exists(other(path, "release"))) Thread.sleep(StepMs)
    case "sleep" => Thread.sleep((fault.get("seconds").asDouble * 1000).toLong)
    case "raise" => throw new IllegalStateException(s"InjectedError: ${path.getFileName}")
    case "kill" =>
      val task = TaskContext.get().taskAttemptId()
      SparkContext.getOrCreate().killTaskAttempt(task, interruptThread = true, "a fault of the test")
      while (true) Thread.sleep(StepMs)
    case "executor" =>
      new ProcessBuilder("kill", "-9", ProcessHandle.current.pid.toString).start().waitFor()
    case "note" =>
    case word => throw new IllegalArgumentException(s"the JVM has no act $word")
  }
}
