package klog.staging

import java.nio.ByteBuffer
import java.util.{Arrays => JavaArrays}
import java.util.zip.CRC32C

import klog.codecs.{Compressor, GrowingBytes}
import klog.logformat.{BatchHeader, OpenBatch}

/** Makes batches v2 of one topic: compressed, with their header (docs/write-plan.md, Batches).
  *
  * @param counts
  *   what the task has done so far
  */
final class BatchEncoder(settings: StagingSettings, task: TaskAttempt, counts: WriteCounts)
    extends AutoCloseable {
  import BatchEncoder._

  private val compressor = Compressor.of(settings.codec, settings.compressionLevel)
  private val compressed = new GrowingBytes
  private val attributes = settings.codec | (if (settings.isAppendTime) HasAppendTime else 0)

  /** Returns records as a batch.
    *
    * @param sequence
    *   the records of the task in the partition before this batch
    */
  def encode(records: OpenBatch, baseOffset: Long, sequence: Long, leaderEpoch: Int): Array[Byte] = {
    val batch = compressor match {
      case None => JavaArrays.copyOf(records.data, records.end)
      case Some(codec) => compress(codec, records)
    }
    writeHeader(ByteBuffer.wrap(batch), records, baseOffset, sequence, leaderEpoch)
    batch
  }

  override def close(): Unit = compressor.foreach(_.close())

  private def compress(codec: Compressor, records: OpenBatch): Array[Byte] = {
    val started = System.nanoTime()
    compressed.clear()
    compressed.add(NoHeader, 0, NoHeader.length)
    codec.compress(records.data, BatchHeader.HeaderBytes, records.end - BatchHeader.HeaderBytes, compressed)
    counts.compressNanos += System.nanoTime() - started
    JavaArrays.copyOf(compressed.data, compressed.end)
  }

  private def writeHeader(
      batch: ByteBuffer,
      records: OpenBatch,
      baseOffset: Long,
      sequence: Long,
      leaderEpoch: Int
  ): Unit = {
    batch.putLong(baseOffset).putInt(batch.limit() - FrameBytes).putInt(leaderEpoch).put(Magic)
    batch.putInt(0).putShort(attributes.toShort).putInt(records.count - 1)
    batch.putLong(records.baseTimestampMs)
    batch.putLong(if (settings.isAppendTime) task.nowMs else records.maxTimestampMs)
    batch.putLong(task.producerId).putShort(task.producerEpoch)
    batch.putInt((sequence & Int.MaxValue).toInt).putInt(records.count)
    val crc = new CRC32C
    crc.update(batch.array, CrcStart, batch.limit() - CrcStart)
    batch.putInt(CrcAt, crc.getValue.toInt)
  }
}

object BatchEncoder {
  private val HasAppendTime = 0x08
  private val Magic: Byte = 2
  private val FrameBytes = 12
  private val CrcAt = 17
  private val CrcStart = 21
  private val NoHeader = new Array[Byte](BatchHeader.HeaderBytes)
}
