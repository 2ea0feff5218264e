package org.apache.spark.rdd

import scala.reflect.ClassTag

import org.apache.spark.{ContextCleaner, ShuffleDependency}

/** Methods of Spark's that are not public, so this file lies in their package. */
object KlogRows {

  /** Returns the result of a function, which gets the number of each task and its rows.
    *
    * @param isOrderSensitive
    *   whether the result depends on the order of the rows. If so, and Spark loses the result of a task whose
    *   rows may come in another order next time, Spark runs all tasks that used it again, or fails: it never
    *   mixes both results
    */
  def map[T, U: ClassTag](
      rows: RDD[T],
      run: (Int, Iterator[T]) => Iterator[U],
      isOrderSensitive: Boolean
  ): RDD[U] = rows.mapPartitionsWithIndexInternal(run, isOrderSensitive = isOrderSensitive)

  /** Deletes the files of a shuffle; Spark does it when the driver has collected garbage. */
  def deleteShuffle(shuffled: RDD[_]): Unit =
    for (cleaner <- shuffled.sparkContext.cleaner; dependency <- shuffled.dependencies) dependency match {
      case shuffle: ShuffleDependency[_, _, _] =>
        cleaner.doCleanupShuffle(shuffle.shuffleId, blocking = false)
      case _ =>
    }

  /** Throws if this Spark lacks one of the methods. */
  def probe(): Unit = {
    val flag = java.lang.Boolean.TYPE
    val parameters = Seq(classOf[(_, _) => _], flag, flag, flag, classOf[ClassTag[_]])
    classOf[RDD[_]].getMethod("mapPartitionsWithIndexInternal", parameters: _*)
    classOf[ContextCleaner].getMethod("doCleanupShuffle", Integer.TYPE, flag)
  }
}
