package klog.staging

import scala.collection.mutable.ArrayBuffer
import scala.util.Using

import klog.logformat.RecordFields
import munit.FunSuite

/** Batches that are less than half full are packed again by the task that gets them, in their order. */
class PartialBatchesSuite extends FunSuite {
  private val (batchBytes, recordBytes, header) = (10061, 100, 61)
  private val settings = PlainSettings.all.copy(batchBytes = batchBytes)

  /** Cuts so many records, as a task that leaves partial batches. */
  private def firstTask(records: Int): Seq[EncodedBatch] = cut(leavesPartial = true) { cutter =>
    val record = new RecordFields
    // Length, attributes, two deltas, no key, length of the value, no headers: at most 9 bytes.
    record.value.set(new Array[Byte](recordBytes - 9))
    for (_ <- 1 to records) cutter.add(record)
  }

  private def secondTask(batches: Seq[EncodedBatch]): Seq[EncodedBatch] =
    cut(leavesPartial = false)(cutter => batches.foreach(cutter.add))

  private def cut(leavesPartial: Boolean)(add: BatchCutter => Unit): Seq[EncodedBatch] = {
    val batches = ArrayBuffer.empty[EncodedBatch]
    Using.resource(new BatchEncoder(settings, 0)) { encoder =>
      val cutter = new BatchCutter(settings, encoder, leavesPartial, batches.append(_))
      add(cutter)
      cutter.flush()
    }
    batches.toSeq
  }

  test("half of a batch is not partial, less is") {
    assertEquals(firstTask(60).map(_.isPartial), Seq(false))
    assertEquals(firstTask(10).map(_.isPartial), Seq(true))
    val sizes = (40 to 60).map(count => firstTask(count).head)
    val smallest = sizes.find(!_.isPartial).get
    assert(smallest.plainBytes >= batchBytes / 2)
    assert(smallest.plainBytes - recordBytes - header < batchBytes / 2, smallest.plainBytes)
  }

  for (
    (counts, packed) <- Seq(
      Seq(10, 10, 10) -> Seq(30),
      Seq(60, 10) -> Seq(60, 10),
      Seq(10, 60, 10, 10) -> Seq(10, 60, 20),
      Seq(40, 40, 40) -> Seq(100, 20)
    )
  )
    test(s"tasks of ${counts.mkString(", ")} records leave batches of ${packed.mkString(", ")}") {
      val batches = secondTask(counts.flatMap(firstTask))
      assertEquals(batches.map(_.recordCount).sum, counts.sum)
      assertEquals(batches.map(batch => (batch.recordCount + 5) / 10 * 10), packed)
    }
}
