package klog.staging

import java.nio.ByteBuffer

import klog.logformat.OpenBatch

/** A batch v2 that has all but its place in the log, its producer and its CRC ([[BatchEncoder.place]]).
  *
  * @param minTimestampMs
  *   the smallest timestamp that readers see
  * @param plainBytes
  *   its size before compression
  * @param isWhole
  *   whether it stays unchanged; if not, it is not compressed, and its records are packed again with those
  *   of other tasks
  */
final class EncodedBatch(
    val data: Array[Byte],
    val minTimestampMs: Long,
    val plainBytes: Int,
    val compressNanos: Long,
    val isWhole: Boolean
) extends Serializable {
  import EncodedBatch._

  def recordCount: Int = header.getInt(CountAt)

  /** The largest timestamp that readers see, as the header has it. */
  def maxTimestampMs: Long = header.getLong(MaxTimestampAt)

  /** Adds its records, which are not compressed, to another batch. */
  def addTo(records: OpenBatch, whenFull: OpenBatch => Unit): Unit =
    records.addAll(data, data.length, header.getLong(BaseTimestampAt), whenFull)

  private def header: ByteBuffer = ByteBuffer.wrap(data)
}

private object EncodedBatch {
  private val BaseTimestampAt = 27
  private val MaxTimestampAt = 35
  private val CountAt = 57
}
