package org.apache.spark.rdd

import munit.FunSuite
import org.apache.spark.{HashPartitioner, SparkConf, SparkContext}
import org.apache.spark.shuffle.SelfContainedSerializer

/** Values come in the order of the tasks that wrote them, however Spark has kept and fetched them. */
class OrderedShuffleSuite extends FunSuite {
  private val MiB = 1L << 20

  test("small tasks are read together, also if tasks between them wrote nothing") {
    assertEquals(OrderedShuffle.groups(Seq(0 -> 100L, 3 -> 100L, 7 -> MiB), 4 * MiB), Seq((0, 8)))
  }

  test("a group ends before it is too large") {
    assertEquals(OrderedShuffle.groups(Seq(0 -> 3 * MiB, 1 -> MiB, 2 -> 1L), 4 * MiB), Seq((0, 2), (2, 3)))
  }

  test("a large task is read alone") {
    val sizes = Seq(0 -> 1L, 1 -> 900 * MiB, 2 -> 1L)
    assertEquals(OrderedShuffle.groups(sizes, 4 * MiB), Seq((0, 1), (1, 2), (2, 3)))
  }

  test("nothing is read where nothing was written") {
    assertEquals(OrderedShuffle.groups(Nil, 4 * MiB), Nil)
  }

  /** Keys are the task and a number within it; a task without values lies between others. */
  for {
    (partitions, groupBytes, files) <- Seq(
      (3, 0L, "plain"),
      (3, MiB, "plain"),
      (250, 0L, "plain"),
      (250, 2000L, "plain"),
      (3, 0L, "encrypted"),
      (250, 2000L, "encrypted")
    )
  }
    test(s"$partitions partitions, $groupBytes bytes at a time, $files files") {
      val conf = new SparkConf()
        .setMaster("local[2]")
        .setAppName("ordered")
        .set("spark.ui.enabled", "false")
        .set("spark.driver.host", "127.0.0.1")
        .set("spark.io.encryption.enabled", (files == "encrypted").toString)
        .set("spark.shuffle.spill.numElementsForceSpillThreshold", "700")
      val context = new SparkContext(conf)
      try {
        val (perTask, tasks, readers) = (4000, 5, 2)
        val rows = context.parallelize(0 until tasks, tasks).flatMap { task =>
          if (task == 2) Nil else (0 until perTask).map(number => ((task, number), number % partitions))
        }
        val byValue = new HashPartitioner(partitions) {
          override def getPartition(key: Any): Int = key.asInstanceOf[(Int, Int)]._2 % partitions
        }
        val serializer = new SelfContainedSerializer
        val read =
          new OrderedShuffle(rows, byValue, serializer, readers, memoryBytes = 1000, identity, groupBytes)
            .glom()
            .collect()
        val expected =
          for (reader <- 0 until readers) yield for {
            value <- reader until partitions by readers
            task <- 0 until tasks if task != 2
            number <- value until perTask by partitions
          } yield ((task, number), value)
        assertEquals(read.map(_.toSeq).toSeq, expected.toSeq)
      } finally context.stop()
    }
}
