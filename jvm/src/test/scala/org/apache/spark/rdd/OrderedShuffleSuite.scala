package org.apache.spark.rdd

import munit.FunSuite

/** Which tasks of a shuffle are read together. */
class OrderedShuffleSuite extends FunSuite {
  private val MiB = 1L << 20

  test("small tasks are read together, also if tasks between them wrote nothing") {
    assertEquals(OrderedShuffle.groups(Seq(0 -> 100L, 3 -> 100L, 7 -> MiB)), Seq((0, 8)))
  }

  test("a group ends before it is too large") {
    assertEquals(OrderedShuffle.groups(Seq(0 -> 3 * MiB, 1 -> MiB, 2 -> 1L)), Seq((0, 2), (2, 3)))
  }

  test("a large task is read alone") {
    assertEquals(OrderedShuffle.groups(Seq(0 -> 1L, 1 -> 900 * MiB, 2 -> 1L)), Seq((0, 1), (1, 2), (2, 3)))
  }

  test("nothing is read where nothing was written") {
    assertEquals(OrderedShuffle.groups(Nil), Nil)
  }
}
