package klog.staging

import java.nio.ByteBuffer
import java.util.{Arrays => JavaArrays}

import klog.codecs.{Compressor, GrowingBytes}
import klog.logformat.BatchHeader._
import klog.logformat.OpenBatch

/** Makes batches v2 of one topic (docs/write-plan.md, Batches): first their records, then their offsets.
  *
  * @param nowMs
  *   the time of staging
  */
final class BatchEncoder(settings: StagingSettings, nowMs: Long) extends AutoCloseable {
  import BatchEncoder._

  private val compressor = Compressor.of(settings.codec, settings.compressionLevel)
  private val compressed = new GrowingBytes
  private val appendTime = if (settings.isAppendTime) HasAppendTime else 0

  /** Returns records as a batch, compressed. */
  def encode(records: OpenBatch): EncodedBatch = {
    val started = System.nanoTime()
    val data = compressor match {
      case None => JavaArrays.copyOf(records.data, records.end)
      case Some(codec) => compress(codec, records)
    }
    withHeader(records, data, settings.codec, System.nanoTime() - started, isPartial = false)
  }

  /** Returns records as a partial batch. */
  def encodePartial(records: OpenBatch): EncodedBatch =
    withHeader(records, JavaArrays.copyOf(records.data, records.end), 0, 0, isPartial = true)

  override def close(): Unit = compressor.foreach(_.close())

  private def compress(codec: Compressor, records: OpenBatch): Array[Byte] = {
    compressed.clear()
    compressed.add(NoHeader, 0, NoHeader.length)
    codec.compress(records.data, HeaderBytes, records.end - HeaderBytes, compressed)
    JavaArrays.copyOf(compressed.data, compressed.end)
  }

  private def withHeader(
      records: OpenBatch,
      data: Array[Byte],
      codec: Int,
      compressNanos: Long,
      isPartial: Boolean
  ): EncodedBatch = {
    val header = ByteBuffer.wrap(data)
    header.putInt(LengthAt, data.length - FrameBytes)
    header.put(MagicAt, 2.toByte)
    header.putShort(AttributesAt, (codec | appendTime).toShort)
    header.putInt(LastOffsetDeltaAt, records.count - 1)
    header.putLong(BaseTimestampAt, records.baseTimestampMs)
    header.putLong(MaxTimestampAt, if (settings.isAppendTime) nowMs else records.maxTimestampMs)
    header.putInt(CountAt, records.count)
    val minMs = if (settings.isAppendTime) nowMs else records.minTimestampMs
    new EncodedBatch(data, minMs, records.end, if (codec == 0) 0 else compressNanos, isPartial)
  }
}

object BatchEncoder {
  private val HasAppendTime = 0x08
  private val NoHeader = new Array[Byte](HeaderBytes)

  /** Writes the offsets of a batch, its producer and its CRC.
    *
    * @param sequence
    *   the records of the task in the partition before this batch
    */
  def assignOffsets(
      batch: EncodedBatch,
      baseOffset: Long,
      sequence: Long,
      leaderEpoch: Int,
      task: TaskAttempt
  ): Unit = {
    val header = ByteBuffer.wrap(batch.data)
    header.putLong(0, baseOffset).putInt(LeaderEpochAt, leaderEpoch)
    header.position(ProducerIdAt).putLong(task.producerId).putShort(task.producerEpoch)
    header.putInt((sequence & Int.MaxValue).toInt)
    header.putInt(CrcAt, batchCrc(header, 0, batch.data.length))
  }
}
