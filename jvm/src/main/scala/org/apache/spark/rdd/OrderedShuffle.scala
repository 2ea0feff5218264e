package org.apache.spark.rdd

import scala.collection.mutable.ArrayBuffer
import scala.reflect.ClassTag

import org.apache.spark._
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.PlainShuffle
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
  * @param memoryBytes
  *   how much of what a task writes it keeps in memory
  * @param translate
  *   returns an error of a task that writes as users see it
  * @param groupBytes
  *   how much is read together, as far as Spark knows the sizes
  */
final class OrderedShuffle[K: ClassTag: Ordering, V: ClassTag](
    @transient private val rows: RDD[(K, V)],
    partitioner: Partitioner,
    serializer: Serializer,
    taskCount: Int,
    memoryBytes: Long,
    translate: Throwable => Throwable,
    groupBytes: Long = OrderedShuffle.GroupBytes
) extends RDD[(K, V)](rows.sparkContext, Nil) {

  override protected def getDependencies: Seq[Dependency[_]] =
    Seq(PlainShuffle.of(rows, partitioner, serializer, memoryBytes, translate))

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
    val read = PlainShuffle.read(dependency, first, end, reduceId, context)
    val pairs =
      if (end - first == 1) read
      else
        new ExternalSorter[K, V, V](
          context,
          ordering = Some(implicitly[Ordering[K]]),
          serializer = serializer
        )
          .insertAllAndUpdateMetrics(read)
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
    PlainShuffle.probe()
    classOf[MapOutputTrackerMaster]
      .getMethod("getPreferredLocationsForShuffle", classOf[ShuffleDependency[_, _, _]], Integer.TYPE)
    classOf[ShuffledRDDPartition].getConstructor(Integer.TYPE)
    val option = classOf[Option[_]]
    val sorted = Seq(classOf[TaskContext], option, option, option, classOf[Serializer])
    classOf[ExternalSorter[_, _, _]].getConstructor(sorted :+ classOf[Array[RowBasedChecksum]]: _*)
  }
}
