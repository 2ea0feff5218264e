package klog.codecs

import java.io.IOException

import org.xerial.snappy.Snappy

/** snappy: xerial's stream, several of them, or a bare block. */
final class XerialSnappy extends Decompressor {
  import XerialSnappy._

  override def decompress(
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      out: Array[Byte],
      outAt: Int,
      magic: Int
  ): Int = {
    if (!hasMagic(in, inAt, inEnd)) return block(in, inAt, inEnd - inAt, out, outAt)
    var position = inAt
    var written = outAt
    while (position < inEnd) {
      if (hasMagic(in, position, inEnd)) {
        position += HeaderBytes
        if (position > inEnd) throw new DamagedBytesException("stream header is cut short")
      } else {
        if (inEnd - position < 4) throw new DamagedBytesException("block size is cut short")
        val size = bigEndianInt(in, position)
        position += 4
        if (size <= 0 || size > inEnd - position) {
          throw new DamagedBytesException(s"block of $size bytes where ${inEnd - position} remain")
        }
        val uncompressed = block(in, position, size, out, written)
        if (uncompressed == Decompressor.DoesNotFit) return Decompressor.DoesNotFit
        position += size
        written += uncompressed
      }
    }
    written - outAt
  }

  private def block(in: Array[Byte], at: Int, size: Int, out: Array[Byte], outAt: Int): Int =
    try {
      // The library writes no more bytes than a block claims, so its claim is checked before.
      val claimed = Snappy.uncompressedLength(in, at, size)
      if (claimed < 0) throw new DamagedBytesException("a block of a negative size")
      if (claimed > out.length - outAt) return Decompressor.DoesNotFit
      Snappy.uncompress(in, at, size, out, outAt)
    } catch {
      case exc: IOException => throw new DamagedBytesException(exc.getMessage, exc)
    }
}

object XerialSnappy {
  private val Magic = Array[Byte](0x82.toByte, 'S', 'N', 'A', 'P', 'P', 'Y', 0)
  private val HeaderBytes = 16

  private def hasMagic(in: Array[Byte], at: Int, end: Int): Boolean =
    end - at >= Magic.length && Magic.indices.forall(index => in(at + index) == Magic(index))

  private def bigEndianInt(in: Array[Byte], at: Int): Int = Integer.reverseBytes(LittleEndian.int(in, at))
}
