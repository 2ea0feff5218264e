package org.apache.spark.rdd

import scala.reflect.ClassTag

/** Runs a function over the rows of each task, and tells Spark whether the order of the rows matters.
  *
  * The rule: if it does, and Spark loses the result of a task whose rows may come in another order next time,
  * Spark runs all tasks that used it again, or fails: it never mixes both results. Its method is not public,
  * so this file lies in its package.
  */
object KlogRows {

  /** Returns the result; the function gets the number of the task. */
  def map[T, U: ClassTag](
      rows: RDD[T],
      run: (Int, Iterator[T]) => Iterator[U],
      isOrderSensitive: Boolean
  ): RDD[U] = rows.mapPartitionsWithIndexInternal(run, isOrderSensitive = isOrderSensitive)

  /** Throws if this Spark has no such method. */
  def probe(): Unit = {
    val flag = java.lang.Boolean.TYPE
    val parameters = Seq(classOf[(_, _) => _], flag, flag, flag, classOf[ClassTag[_]])
    classOf[RDD[_]].getMethod("mapPartitionsWithIndexInternal", parameters: _*)
  }
}
