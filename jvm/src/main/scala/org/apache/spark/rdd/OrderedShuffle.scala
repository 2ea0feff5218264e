package org.apache.spark.rdd

import java.lang.invoke.{MethodHandles, MethodType}

import scala.collection.mutable.ArrayBuffer
import scala.reflect.ClassTag

import org.apache.spark._
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.{ShuffleHandle, ShuffleManager, ShuffleReadMetricsReporter}
import org.apache.spark.shuffle.checksum.RowBasedChecksum
import org.apache.spark.util.collection.ExternalSorter

/** A shuffle whose values come in the order of the tasks that wrote them, without a sort of all of them.
  *
  * The rule: each task reads some of the shuffle's partitions, one after another, and of a partition what
  * the first task wrote, then the second, and so on. Tasks that wrote little are read together, and sorted
  * by Spark. Spark's own reader fetches from all tasks at once, and can only sort all that it got.
  *
  * The classes are not public, so this file lies in their package. Adaptive execution reads shuffles in the
  * same way.
  *
  * @param taskCount
  *   how many tasks read: task `i` reads partition `i` and each `taskCount`-th after it
  * @param groupBytes
  *   how much is read together, as far as Spark knows the sizes
  */
final class OrderedShuffle[K: ClassTag: Ordering, V: ClassTag](
    @transient private val rows: RDD[(K, V)],
    partitioner: Partitioner,
    serializer: Serializer,
    taskCount: Int,
    groupBytes: Long = OrderedShuffle.GroupBytes
) extends RDD[(K, V)](rows.sparkContext, Nil) {

  override protected def getDependencies: Seq[Dependency[_]] =
    new ShuffledRDD[K, V, V](rows, partitioner).setSerializer(serializer).dependencies

  override protected def getPartitions: Array[Partition] =
    Array.tabulate(taskCount)(number => new ShuffledRDDPartition(number))

  /** Returns the hosts that have much of what a task reads first, as Spark's own shuffles do. */
  override protected def getPreferredLocations(split: Partition): Seq[String] =
    SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.getPreferredLocationsForShuffle(dependency, split.index)
      case _ => Nil
    }

  override def compute(split: Partition, context: TaskContext): Iterator[(K, V)] =
    for {
      reduceId <- (split.index until dependency.partitioner.numPartitions by taskCount).iterator
      (first, end) <- OrderedShuffle.groups(mapSizes(reduceId), groupBytes).iterator
      pair <- read(reduceId, first, end, context)
    } yield pair

  private def dependency: ShuffleDependency[K, V, V] =
    dependencies.head.asInstanceOf[ShuffleDependency[K, V, V]]

  /** Returns the number of each task that wrote something for a partition, and its bytes. */
  private def mapSizes(reduceId: Int): Seq[(Int, Long)] = {
    val tracker = SparkEnv.get.mapOutputTracker
    val shuffle = dependency.shuffleId
    val blocks =
      tracker.getMapSizesByExecutorId(shuffle, 0, Int.MaxValue, reduceId, reduceId + 1).flatMap(_._2)
    blocks.map { case (_, size, mapIndex) => mapIndex -> size }.toSeq.sorted
  }

  /** Reads what some tasks wrote. One task's values are in order already. */
  private def read(reduceId: Int, first: Int, end: Int, context: TaskContext): Iterator[(K, V)] = {
    val metrics = context.taskMetrics().createTempShuffleReadMetrics()
    val reader = SparkEnv.get.shuffleManager
      .getReader[K, V](dependency.shuffleHandle, first, end, reduceId, reduceId + 1, context, metrics)
    val pairs =
      if (end - first == 1) reader.read()
      else
        new ExternalSorter[K, V, V](
          context,
          ordering = Some(implicitly[Ordering[K]]),
          serializer = serializer
        )
          .insertAllAndUpdateMetrics(reader.read())
    pairs.map(pair => (pair._1, pair._2))
  }
}

object OrderedShuffle {

  /** Larger requests would save little. */
  private val GroupBytes = 4L << 20

  /** Returns ranges of tasks that are read together, in order: the first, and the one after the last.
    *
    * @param sizes
    *   tasks in order, each with its bytes
    */
  private[rdd] def groups(sizes: Seq[(Int, Long)], groupBytes: Long): Seq[(Int, Int)] = {
    val ranges = ArrayBuffer.empty[(Int, Int)]
    var bytes = 0L
    for ((map, size) <- sizes) {
      if (ranges.nonEmpty && bytes + size <= groupBytes) {
        ranges(ranges.length - 1) = (ranges.last._1, map + 1)
        bytes += size
      } else {
        ranges += ((map, map + 1))
        bytes = size
      }
    }
    ranges.toSeq
  }

  /** Throws if this Spark lacks something that is used here. */
  def probe(): Unit = {
    val number = Integer.TYPE
    classOf[MapOutputTracker].getMethod("getMapSizesByExecutorId", Seq.fill(5)(number): _*)
    classOf[MapOutputTrackerMaster]
      .getMethod("getPreferredLocationsForShuffle", classOf[ShuffleDependency[_, _, _]], number)
    classOf[TaskMetrics].getMethod("createTempShuffleReadMetrics")
    // `getMethod` would load the classes of all methods of SparkEnv, which pip's Spark 4.3 does not have.
    for (result <- Seq(classOf[ShuffleManager], classOf[MapOutputTracker])) {
      val name = result.getSimpleName
      val getter = name.take(1).toLowerCase + name.drop(1)
      MethodHandles.lookup.findVirtual(classOf[SparkEnv], getter, MethodType.methodType(result))
    }
    val (handle, reporter) = (classOf[ShuffleHandle], classOf[ShuffleReadMetricsReporter])
    val range = Seq.fill(4)(number)
    classOf[ShuffleManager].getMethod("getReader", handle +: range :+ classOf[TaskContext] :+ reporter: _*)
    classOf[ShuffledRDDPartition].getConstructor(number)
    val option = classOf[Option[_]]
    val sorted = Seq(classOf[TaskContext], option, option, option, classOf[Serializer])
    classOf[ExternalSorter[_, _, _]].getConstructor(sorted :+ classOf[Array[RowBasedChecksum]]: _*)
  }
}
