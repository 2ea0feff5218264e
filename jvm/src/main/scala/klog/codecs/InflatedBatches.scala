package klog.codecs

import java.nio.ByteBuffer

import klog.logformat.{BatchLimits, CorruptRecordError}

/** The array that batches are decompressed into, one after the other; used again and again.
  *
  * The rule: nothing is decompressed past a limit, and memory follows the largest batch. New memory
  * costs more than the copy, so batches share the array until it is full.
  */
final class InflatedBatches extends AutoCloseable {
  import InflatedBatches._

  private var array = Array.emptyByteArray
  private var used = 0
  private var view = ByteBuffer.wrap(array)
  private val snappy = new XerialSnappy
  private lazy val gzip = new GzipMembers
  private lazy val lz4 = new Lz4Frame
  private lazy val zstd = new ZstdFrames
  private var hasGzip = false
  private var hasZstd = false

  def buffer: ByteBuffer = view

  def data: Array[Byte] = array

  /** Where the batch that was decompressed last starts and ends. */
  var start: Int = 0
  var end: Int = 0

  /** Decompresses a batch after those that are here.
    *
    * @param canReplace
    *   whether nothing points to the batches that are here
    * @return
    *   false if they have to be read first, because the batch takes their place
    * @throws CorruptRecordError
    *   if the bytes are damaged or too many
    */
  def add(
      codec: Int,
      magic: Int,
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      position: Long,
      canReplace: Boolean
  ): Boolean = {
    if (canReplace) used = 0
    else if (used >= SharedBytes) return false
    if (array.length == 0) replaceArray(FirstBytes)
    val decompressor = decompressorOf(codec, position)
    var size = decompress(decompressor, codec, in, inAt, inEnd, magic, position)
    if (size == Decompressor.DoesNotFit && !canReplace) return false
    while (size == Decompressor.DoesNotFit) {
      if (array.length >= BatchLimits.MaxBatchBytes) {
        val reason = s"a batch that decompresses to more than ${BatchLimits.MaxBatchBytes} bytes is refused"
        throw new CorruptRecordError(reason, position)
      }
      replaceArray(math.min(4L * array.length, BatchLimits.MaxBatchBytes).toInt)
      size = decompress(decompressor, codec, in, inAt, inEnd, magic, position)
    }
    start = used
    end = used + size
    used = end
    true
  }

  override def close(): Unit = {
    if (hasGzip) gzip.close()
    if (hasZstd) zstd.close()
  }

  private def decompress(
      decompressor: Decompressor,
      codec: Int,
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      magic: Int,
      position: Long
  ): Int =
    try decompressor.decompress(in, inAt, inEnd, array, used, magic)
    catch {
      case exc: DamagedBytesException =>
        val reason = s"${CodecNames(codec)} data is damaged: ${exc.getMessage}"
        throw new CorruptRecordError(reason, position, exc)
    }

  private def decompressorOf(codec: Int, position: Long): Decompressor = codec match {
    case 1 =>
      hasGzip = true
      gzip
    case 2 => snappy
    case 3 => lz4
    case 4 =>
      hasZstd = true
      zstd
    case _ => throw new CorruptRecordError(s"compression codec $codec does not exist", position)
  }

  private def replaceArray(size: Int): Unit = {
    array = new Array[Byte](size)
    view = ByteBuffer.wrap(array)
  }
}

object InflatedBatches {
  private val FirstBytes = 2 << 20

  /** So many bytes of batches are shown together: they stay in the processor's caches. */
  private val SharedBytes = 512 << 10
  private val CodecNames = Vector("none", "gzip", "snappy", "lz4", "zstd")
}
