package klog.staging

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import klog.logformat.{OpenBatch, RecordFields}
import klog.store.LocalStore
import munit.FunSuite

/** A task takes the batches of a partition in their order only, each once. */
class BatchOrderSuite extends FunSuite {
  private val a0 = ("t", 0, 0, 0)
  private val settings = PlainSettings.all
  private val topic = TopicPlan("t", "id", 0, new Array[Long](2), new Array[Int](2), settings)
  private val plan =
    WritePlan("write", "root", Some("t"), None, None, None, 1 << 20, Map("t" -> topic), Map.empty)

  accepts("tasks one after the other", a0, ("t", 0, 0, 1), ("t", 0, 3, 0), ("t", 1, 0, 0))
  refuses("a batch that is missing", a0, ("t", 0, 0, 2))
  refuses("the first batch of a task that is missing", a0, ("t", 0, 1, 1))
  refuses("a batch that comes again", a0, a0)
  refuses("an earlier task", ("t", 0, 1, 0), a0)
  refuses("a partition that comes again", a0, ("t", 1, 0, 0), ("t", 0, 1, 0))

  private def accepts(name: String, keys: (String, Int, Int, Int)*): Unit =
    test(name)(assertEquals(stagedSegments(keys), 2))

  private def refuses(name: String, keys: (String, Int, Int, Int)*): Unit = test(name) {
    val error = intercept[StagingError](stagedSegments(keys))
    assert(error.getMessage.contains("Spark's shuffle gave the batch"), error.getMessage)
  }

  /** Stages a batch of one record for each key, and returns how many segments there are. */
  private def stagedSegments(keys: Seq[(String, Int, Int, Int)]): Int = {
    val root = Files.createTempDirectory("klog-order")
    try {
      val task = TaskAttempt.of(plan, None, 0, 1, 0)
      Using.resource(new BatchStager(plan, None, task, new StagedFiles(LocalStore, root.toString))) {
        stager =>
          for ((topic, partition, task, number) <- keys)
            stager.add(KeyedBatch(BatchKey(topic, partition, task, number), batch))
          stager.finish().topics.map(_.segments.length).sum
      }
    } finally delete(root)
  }

  private def batch: EncodedBatch = {
    val records = new OpenBatch(1 << 20)
    records.add(new RecordFields)
    Using.resource(new BatchEncoder(settings, 0))(_.encode(records))
  }

  private def delete(folder: Path): Unit =
    Using.resource(Files.walk(folder))(_.iterator.asScala.toList.reverse.foreach(Files.delete))
}
