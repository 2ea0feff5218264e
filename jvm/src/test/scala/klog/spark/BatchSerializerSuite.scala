package klog.spark

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException}
import java.nio.ByteBuffer

import klog.staging.{BatchKey, EncodedBatch}
import munit.FunSuite

/** What a shuffle of batches writes is read back, and a torn one is an error. */
class BatchSerializerSuite extends FunSuite {
  private val key = BatchKey("größen", 3, 70000, 5)
  private val batch = new EncodedBatch(Array.tabulate(300)(_.toByte), -1L, 700, 1L << 40, isPartial = true)

  test("keys and batches come back") {
    val pairs = read(written(2))
    assertEquals(pairs.map(_._1), Seq(key, key))
    for ((_, read) <- pairs) {
      assertEquals(read.data.toSeq, batch.data.toSeq)
      assertEquals((read.minTimestampMs, read.plainBytes, read.compressNanos), (-1L, 700, 1L << 40))
      assert(read.isPartial)
    }
  }

  test("an end within a batch or a key is an error, not the end of the batches") {
    val whole = written(1)
    for (size <- 1 until whole.length) intercept[IOException](read(whole.take(size)))
  }

  test("a length that no batch has is an error before memory is taken for it") {
    val whole = written(1)
    for (length <- Seq(-1, 60, Int.MaxValue)) {
      val bytes = ByteBuffer.wrap(whole.clone).putInt(whole.length - batch.data.length - 4, length).array
      val error = intercept[IOException](read(bytes))
      assert(error.getMessage.contains(s"a batch of $length bytes"), error.getMessage)
    }
  }

  private def written(count: Int): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new BatchSerializer().newInstance().serializeStream(bytes)
    for (_ <- 1 to count) out.writeKey(key).writeValue(batch)
    out.close()
    bytes.toByteArray
  }

  private def read(bytes: Array[Byte]): Seq[(BatchKey, EncodedBatch)] = {
    val in = new BatchSerializer().newInstance().deserializeStream(new ByteArrayInputStream(bytes))
    in.asKeyValueIterator.map { case (key, batch) =>
      (key.asInstanceOf[BatchKey], batch.asInstanceOf[EncodedBatch])
    }.toSeq
  }
}
