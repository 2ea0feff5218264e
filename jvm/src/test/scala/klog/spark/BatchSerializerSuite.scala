package klog.spark

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Random

import klog.staging.{BatchKey, EncodedBatch}
import munit.FunSuite

/** What a shuffle of batches writes is read back, and a torn one is an error. */
class BatchSerializerSuite extends FunSuite {
  private val key = BatchKey("größen", 3, 70000, 5)
  private val batch = new EncodedBatch(Array.tabulate(300)(_.toByte), -1L, 700, 1L << 40, isPartial = false)
  private val partial = new EncodedBatch(new Array[Byte](100000), 5L, 100000, 0, isPartial = true)
  private val keyBytes = 2 + key.topic.getBytes(UTF_8).length + 12
  private val plainBytesAt = keyBytes + 8

  test("keys and batches come back") {
    val pairs = read(written(2))
    assertEquals(pairs.map(_._1), Seq(key, key))
    for ((_, read) <- pairs) {
      assertEquals(read.data.toSeq, batch.data.toSeq)
      assertEquals((read.minTimestampMs, read.plainBytes, read.compressNanos), (-1L, 700, 1L << 40))
      assert(!read.isPartial)
    }
  }

  test("a partial batch is compressed on its way") {
    val bytes = written(1, partial)
    assert(bytes.length < 1000, bytes.length)
    val (_, read) = this.read(bytes).head
    assertEquals(read.data.toSeq, partial.data.toSeq)
    assertEquals((read.minTimestampMs, read.plainBytes, read.isPartial), (5L, 100000, true))
  }

  test("a partial batch of bytes that do not compress comes back") {
    val random = new Array[Byte](200000)
    new Random(1).nextBytes(random)
    val (_, read) =
      this.read(written(1, new EncodedBatch(random, 5L, random.length, 0, isPartial = true))).head
    assertEquals(read.data.toSeq, random.toSeq)
  }

  test("a partial batch that is damaged, or of another size, is an error") {
    val whole = written(1, partial)
    val shorter = ByteBuffer.wrap(whole.clone).putInt(plainBytesAt, 99999).array
    val longer = ByteBuffer.wrap(whole.clone).putInt(plainBytesAt, 100001).array
    val damaged = whole.clone
    damaged(whole.length - 20) = (damaged(whole.length - 20) ^ 0x55).toByte
    for (bytes <- Seq(shorter, longer, damaged)) intercept[IOException](read(bytes))
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

  private def written(count: Int, batch: EncodedBatch = batch): Array[Byte] = {
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
