package org.apache.spark.rdd

import java.lang.invoke.{MethodHandles, MethodType}

import scala.collection.mutable.ArrayBuffer
import scala.reflect.ClassTag

import org.apache.spark.{
  Dependency,
  MapOutputTracker,
  Partition,
  Partitioner,
  ShuffleDependency,
  SparkEnv,
  TaskContext
}
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleManager

/** A shuffle whose values come in the order of the tasks that wrote them, without a sort of all of them.
  *
  * The rule: each task reads some of the shuffle's partitions, one after another, and of a partition what
  * the first task wrote, then the second, and so on. Tasks that wrote little are read together and sorted in
  * memory. Spark's own reader fetches from all tasks at once, and can only sort all that it got.
  *
  * The classes are not public, so this file lies in their package. Adaptive execution reads shuffles in the
  * same way.
  *
  * @param taskCount
  *   how many tasks read: task `i` reads partition `i` and each `taskCount`-th after it
  */
final class OrderedShuffle[K: ClassTag: Ordering, V: ClassTag](
    @transient private val rows: RDD[(K, V)],
    partitioner: Partitioner,
    serializer: Serializer,
    taskCount: Int
) extends RDD[(K, V)](rows.sparkContext, Nil) {
  import OrderedShuffle._

  override protected def getDependencies: Seq[Dependency[_]] =
    Seq(new ShuffleDependency[K, V, V](rows, partitioner, serializer))

  override protected def getPartitions: Array[Partition] =
    Array.tabulate(taskCount)(number => new ShuffledRDDPartition(number))

  override def compute(split: Partition, context: TaskContext): Iterator[(K, V)] =
    for {
      bucket <- (split.index until dependency.partitioner.numPartitions by taskCount).iterator
      (first, end) <- groups(mapSizes(bucket)).iterator
      pair <- read(bucket, first, end, context)
    } yield pair

  private def dependency: ShuffleDependency[K, V, V] =
    dependencies.head.asInstanceOf[ShuffleDependency[K, V, V]]

  /** Returns the number of each task that wrote something for a partition, and its bytes. */
  private def mapSizes(bucket: Int): Seq[(Int, Long)] = {
    val tracker = SparkEnv.get.mapOutputTracker
    val id = dependency.shuffleId
    val blocks = tracker.getMapSizesByExecutorId(id, 0, Int.MaxValue, bucket, bucket + 1).flatMap(_._2)
    blocks.map { case (_, size, map) => map -> size }.toSeq.sorted
  }

  private def read(bucket: Int, first: Int, end: Int, context: TaskContext): Iterator[(K, V)] = {
    val metrics = context.taskMetrics().createTempShuffleReadMetrics()
    val manager = SparkEnv.get.shuffleManager
    val reader =
      manager.getReader[K, V](dependency.shuffleHandle, first, end, bucket, bucket + 1, context, metrics)
    val pairs = reader.read().asInstanceOf[Iterator[(K, V)]]
    if (end - first == 1) pairs else pairs.toArray.sortBy(_._1).iterator
  }
}

object OrderedShuffle {

  /** So much is sorted in memory: larger requests would save nothing. */
  private val GroupBytes = 4L << 20

  /** Returns ranges of tasks that are read together, in order: the first, and the one after the last. */
  private[rdd] def groups(sizes: Seq[(Int, Long)]): Seq[(Int, Int)] = {
    val ranges = ArrayBuffer.empty[(Int, Int)]
    var groupBytes = 0L
    for ((map, size) <- sizes) {
      if (ranges.nonEmpty && groupBytes + size <= GroupBytes) {
        ranges(ranges.length - 1) = (ranges.last._1, map + 1)
        groupBytes += size
      } else {
        ranges += ((map, map + 1))
        groupBytes = size
      }
    }
    ranges.toSeq
  }

  /** Throws if this Spark lacks one of the methods. */
  def probe(): Unit = {
    val number = Integer.TYPE
    classOf[MapOutputTracker].getMethod("getMapSizesByExecutorId", Seq.fill(5)(number): _*)
    classOf[TaskMetrics].getMethod("createTempShuffleReadMetrics")
    // `getMethod` would load the classes of all methods of SparkEnv, which pip's Spark 4.3 does not have.
    for (result <- Seq(classOf[ShuffleManager], classOf[MapOutputTracker])) {
      val name = result.getSimpleName
      val getter = name.take(1).toLowerCase + name.drop(1)
      MethodHandles.lookup.findVirtual(classOf[SparkEnv], getter, MethodType.methodType(result))
    }
    classOf[ShuffledRDDPartition].getConstructor(number)
    classOf[ShuffleManager].getMethods.filter(_.getName == "getReader").foreach(_.getParameterTypes)
  }
}
