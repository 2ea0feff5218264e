package klog.codecs

import net.jpountz.lz4.{LZ4Compressor, LZ4Factory}

/** lz4: a frame of independent blocks of 64 KiB without checksums. A block that does not get smaller is
  * stored.
  */
final class Lz4Writer(level: Int) extends Compressor {
  import Lz4Writer._

  private val compressor: LZ4Compressor =
    if (level == FastLevel) LZ4Factory.fastestInstance.fastCompressor
    else LZ4Factory.fastestInstance.highCompressor(level)

  override def compress(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit = {
    out.add(Header, 0, Header.length)
    var done = 0
    while (done < size) {
      val blockBytes = math.min(BlockBytes, size - done)
      addBlock(in, at + done, blockBytes, out)
      done += blockBytes
    }
    out.addLittleEndian(0)
  }

  private def addBlock(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit = {
    val maxBytes = compressor.maxCompressedLength(size)
    out.reserve(4 + maxBytes)
    val written = compressor.compress(in, at, size, out.data, out.end + 4, maxBytes)
    if (written < size) {
      out.addLittleEndian(written)
      out.end += written
    } else {
      out.addLittleEndian(size | Stored)
      out.add(in, at, size)
    }
  }
}

object Lz4Writer {

  /** Kafka's default level means lz4's fast compressor; the others mean the high compressor. */
  val FastLevel: Int = 9
  private val BlockBytes = 64 << 10
  private val Stored = 1 << 31
  private val Header = Array(0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82).map(_.toByte)
}
