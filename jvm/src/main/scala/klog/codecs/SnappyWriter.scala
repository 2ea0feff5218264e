package klog.codecs

import java.nio.ByteBuffer

import org.xerial.snappy.Snappy

/** snappy: xerial's stream of blocks of 32 KiB, each after its length. */
final class SnappyWriter extends Compressor {
  import SnappyWriter._

  override def compress(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit = {
    out.add(Header, 0, Header.length)
    var done = 0
    while (done < size) {
      val blockBytes = math.min(BlockBytes, size - done)
      out.reserve(4 + Snappy.maxCompressedLength(blockBytes))
      val written = Snappy.compress(in, at + done, blockBytes, out.data, out.end + 4)
      ByteBuffer.wrap(out.data).putInt(out.end, written)
      out.end += 4 + written
      done += blockBytes
    }
  }
}

object SnappyWriter {
  private val BlockBytes = 32 << 10
  private val Header =
    ByteBuffer.allocate(16).put(0x82.toByte).put("SNAPPY\u0000".getBytes).putInt(1).putInt(1).array
}
