package org.apache.spark.shuffle

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import munit.FunSuite
import org.apache.commons.io.FileUtils
import org.apache.spark._
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}

/** Values come back as they were written, also if files are lost or damaged, and are not compressed. */
class PlainShuffleSuite extends FunSuite {
  import PlainShuffleSuite._

  for ((where, memoryBytes) <- Seq("in memory" -> (1L << 30), "on disk" -> 0L))
    test(s"bytes that would compress are not compressed, and wait $where") {
      withSpark() { context =>
        assertEquals(new Shuffled(zeros(context), memoryBytes).collect().toSeq, expected)
        assert(listenerOf(context).bytes > taskCount * partitionCount * valueBytes)
      }
    }

  for (
    (name, value) <- Seq(
      "spark.io.encryption.enabled" -> "true",
      "spark.shuffle.sort.io.plugin.class" -> "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO",
      "spark.shuffle.manager" -> classOf[OtherManager].getName
    )
  )
    test(s"with $name all is Spark's, which compresses") {
      withSpark(name -> value) { context =>
        assertEquals(new Shuffled(zeros(context)).collect().toSeq, expected)
        assert(listenerOf(context).bytes < taskCount * partitionCount * valueBytes)
      }
    }

  test("a task that fails while its file is open leaves no file, and its next attempt succeeds") {
    withSpark() { context =>
      assertEquals(new Shuffled(zeros(context), partitioner = failingLate).collect().toSeq, expected)
      assertEquals(filesOf(context).length, 2 * taskCount)
    }
  }

  test("an error of a task is translated") {
    withSpark("spark.master" -> "local[1]") { context =>
      val rows = zeros(context).map { pair =>
        SparkEnv.get.blockManager.diskBlockManager.localDirs.foreach(FileUtils.deleteDirectory)
        pair
      }
      val shuffled = new Shuffled(rows, memoryBytes = 0, translate = new TranslatedError(_))
      val error = intercept[SparkException](shuffled.collect())
      assert(error.getMessage.contains("batches cannot wait in a temporary file"), error.getMessage)
      assert(error.getMessage.contains("TranslatedError"), error.getMessage)
    }
  }

  test("tasks that wrote nothing are left out") {
    withSpark() { context =>
      val first = zeros(context).filter(_._1._1 == 0)
      assertEquals(new Shuffled(first).collect().toSeq, expected.filter(_._1._1 == 0))
      assertEquals(new Shuffled(zeros(context).filter(_ => false)).collect().toSeq, Nil)
    }
  }

  for {
    (what, change) <- Seq[(String, Path => Unit)](
      "lost" -> (Files.delete(_)),
      "damaged" -> (turnBit(_)),
      "cut off" -> (cut(_, 500)),
      "all cut off" -> (cut(_, 0))
    )
  }
    test(s"a task is run again if its bytes are $what") {
      withSpark() { context =>
        val shuffled = new Shuffled(zeros(context))
        assertEquals(shuffled.collect().toSeq, expected)
        assertEquals(listenerOf(context).mapTasks, taskCount)
        change(filesOf(context).filter(_.toString.endsWith(".data")).head)
        assertEquals(shuffled.collect().toSeq, expected)
        assert(listenerOf(context).mapTasks > taskCount)
      }
    }

  test("Spark deletes the files of a shuffle") {
    withSpark() { context =>
      val shuffled = new Shuffled(zeros(context))
      shuffled.collect()
      assertEquals(filesOf(context).length, 2 * taskCount)
      context.cleaner.get.doCleanupShuffle(shuffled.shuffle.shuffleId, blocking = true)
      assertEquals(filesOf(context), Nil)
    }
  }
}

object PlainShuffleSuite {
  private val (taskCount, partitionCount, valueBytes) = (2, 3, 100000)
  private type Key = (Int, Int)
  private val expected =
    for (partition <- 0 until partitionCount; task <- 0 until taskCount) yield (task, partition) -> valueBytes

  /** A shuffle manager that is not Spark's own, as those of vendors. */
  final class OtherManager(conf: SparkConf) extends sort.SortShuffleManager(conf)

  private final class TranslatedError(cause: Throwable) extends RuntimeException(cause)

  private def byPartition: Partitioner = new HashPartitioner(partitionCount) {
    override def getPartition(key: Any): Int = key.asInstanceOf[Key]._2
  }

  /** Numbers the last partition wrongly in a first attempt: the file is open then. */
  private def failingLate: Partitioner = new HashPartitioner(partitionCount) {
    override def getPartition(key: Any): Int = {
      val partition = key.asInstanceOf[Key]._2
      val isWrong = partition == partitionCount - 1 && TaskContext.get().attemptNumber() == 0
      if (isWrong) partitionCount else partition
    }
  }

  private final class Listener extends SparkListener {
    @volatile var bytes = 0L
    @volatile var mapTasks = 0
    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = {
      if (end.taskType == "ShuffleMapTask") mapTasks += 1
      // A task that fails has none.
      Option(end.taskMetrics).foreach(metrics => bytes += metrics.shuffleWriteMetrics.bytesWritten)
    }
  }

  private def withSpark(settings: (String, String)*)(run: SparkContext => Unit): Unit = {
    val folder = Files.createTempDirectory("klog-plain-shuffle")
    val conf = new SparkConf()
      .setMaster("local[2,2]")
      .setAppName("plain shuffle")
      .set("spark.ui.enabled", "false")
      .set("spark.driver.host", "127.0.0.1")
      .set("spark.local.dir", folder.toString)
      .setAll(settings)
    val context = new SparkContext(conf)
    try {
      context.addSparkListener(new Listener)
      run(context)
    } finally {
      context.stop()
      FileUtils.deleteDirectory(folder.toFile)
    }
  }

  private def listenerOf(context: SparkContext): Listener = {
    context.listenerBus.waitUntilEmpty()
    context.listenerBus.listeners.asScala.collectFirst { case listener: Listener => listener }.get
  }

  /** Each task has a value of zeros for each partition. */
  private def zeros(context: SparkContext): RDD[(Key, Array[Byte])] =
    context.parallelize(0 until taskCount, taskCount).flatMap { task =>
      (0 until partitionCount).map(partition => (task, partition) -> new Array[Byte](valueBytes))
    }

  /** The keys of each partition in turn, by the order of tasks, with the zeros of their values. */
  private final class Shuffled(
      @transient rows: RDD[(Key, Array[Byte])],
      memoryBytes: Long = valueBytes * 3 / 2,
      partitioner: Partitioner = byPartition,
      translate: Throwable => Throwable = identity
  ) extends RDD[(Key, Int)](rows.sparkContext, Nil) {
    lazy val shuffle: ShuffleDependency[Key, Array[Byte], Array[Byte]] =
      dependencies.head.asInstanceOf[ShuffleDependency[Key, Array[Byte], Array[Byte]]]

    override protected def getDependencies: Seq[Dependency[_]] =
      Seq(PlainShuffle.of(rows, partitioner, new SelfContainedSerializer, memoryBytes, translate))

    override protected def getPartitions: Array[Partition] =
      Array.tabulate(partitionCount)(number => new Partition { override val index: Int = number })

    override def compute(split: Partition, context: TaskContext): Iterator[(Key, Int)] =
      for {
        task <- (0 until taskCount).iterator
        pair <- PlainShuffle.read(shuffle, task, task + 1, split.index, context)
      } yield pair._1 -> pair._2.count(_ == 0)
  }

  private def turnBit(file: Path): Unit = {
    val bytes = Files.readAllBytes(file)
    bytes(bytes.length / 2) = (bytes(bytes.length / 2) ^ 1).toByte
    val _ = Files.write(file, bytes)
  }

  private def cut(file: Path, size: Int): Unit = {
    val _ = Files.write(file, Files.readAllBytes(file).take(size))
  }

  private def filesOf(context: SparkContext): Seq[Path] = {
    val walk = Files.walk(Path.of(context.getConf.get("spark.local.dir")))
    try walk.iterator.asScala.filter(Files.isRegularFile(_)).toSeq
    finally walk.close()
  }
}
