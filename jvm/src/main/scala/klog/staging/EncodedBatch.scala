package klog.staging

import java.nio.ByteBuffer

import klog.logformat.BatchHeader._
import klog.logformat.{BatchLimits, OpenBatch}

/** A batch v2 that has all but its offsets, its producer and its CRC ([[BatchEncoder.assignOffsets]]).
  *
  * @param minTimestampMs
  *   the smallest timestamp that readers see
  * @param plainBytes
  *   its size before compression
  * @param isPartial
  *   whether it is less than half full: it is not compressed, and another task packs its records with others
  */
final class EncodedBatch(
    val data: Array[Byte],
    val minTimestampMs: Long,
    val plainBytes: Int,
    val compressNanos: Long,
    val isPartial: Boolean
) {
  def recordCount: Int = header.getInt(CountAt)

  /** The largest timestamp that readers see, as the header has it. */
  def maxTimestampMs: Long = header.getLong(MaxTimestampAt)

  /** Adds its records, which are not compressed, to another batch. */
  def addTo(records: OpenBatch, whenFull: OpenBatch => Unit): Unit =
    records.addAll(data, data.length, header.getLong(BaseTimestampAt), whenFull)

  private def header: ByteBuffer = ByteBuffer.wrap(data)
}

object EncodedBatch {

  /** Compression makes a batch that does not compress a little larger. */
  val MaxBytes: Int = BatchLimits.MaxBatchBytes / 8 * 9
}
