package klog.codecs

import net.jpountz.lz4.{LZ4Exception, LZ4Factory}
import net.jpountz.xxhash.XXHashFactory

/** lz4: a frame of blocks that do not depend on each other.
  *
  * The rule (docs/format.md, 5): the header keeps its checksum, except in messages of magic 0, where
  * Kafka's own writers stored a wrong one. Checksums of blocks are checked. What follows the end mark is
  * ignored. Blocks are inflated one by one into the array: the library's stream copies each of them.
  */
final class Lz4Frame extends Decompressor {
  import Lz4Frame._

  private val blocks = LZ4Factory.fastestInstance.safeDecompressor
  private val hash = XXHashFactory.fastestInstance.hash32

  override def decompress(
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      out: Array[Byte],
      outAt: Int,
      magic: Int
  ): Int = {
    if (inEnd - inAt < 7) throw new DamagedBytesException("frame is cut short")
    val flags = in(inAt + 4)
    val maxBytes = maxBlockBytes(in, inAt)
    val headerEnd = inAt + (if ((flags & 0x08) != 0) 14 else 6)
    if (headerEnd >= inEnd) throw new DamagedBytesException("frame is cut short")
    val checksum = hash.hash(in, inAt + 4, headerEnd - inAt - 4, 0) >> 8
    if (magic != 0 && in(headerEnd) != checksum.toByte) {
      throw new DamagedBytesException("frame header checksum differs")
    }
    val hasChecksums = (flags & 0x10) != 0
    var position = headerEnd + 1
    var written = outAt
    while (true) {
      val word = intAt(in, position, inEnd)
      position += 4
      if (word == 0) return written - outAt
      val size = word & Int.MaxValue
      if (size > math.min(maxBytes, inEnd - position)) {
        throw new DamagedBytesException(s"block of $size bytes is larger than the frame allows")
      }
      if (hasChecksums && intAt(in, position + size, inEnd) != hash.hash(in, position, size, 0)) {
        throw new DamagedBytesException("block checksum differs")
      }
      val isStored = word < 0
      val inflated =
        if (isStored) store(in, position, size, out, written)
        else inflate(in, position, size, out, written, maxBytes)
      if (inflated == Decompressor.DoesNotFit) return Decompressor.DoesNotFit
      written += inflated
      position += size + (if (hasChecksums) 4 else 0)
    }
    Decompressor.DoesNotFit
  }

  private def store(in: Array[Byte], at: Int, size: Int, out: Array[Byte], outAt: Int): Int =
    if (size > out.length - outAt) Decompressor.DoesNotFit
    else {
      System.arraycopy(in, at, out, outAt, size)
      size
    }

  private def inflate(
      in: Array[Byte],
      at: Int,
      size: Int,
      out: Array[Byte],
      outAt: Int,
      maxBytes: Int
  ): Int = {
    val room = out.length - outAt
    try blocks.decompress(in, at, size, out, outAt, math.min(maxBytes, room))
    catch {
      // The library says neither whether a block is damaged nor whether its room was too small.
      case _: LZ4Exception if room < maxBytes => Decompressor.DoesNotFit
      case exc: LZ4Exception => throw new DamagedBytesException(exc.getMessage, exc)
    }
  }
}

object Lz4Frame {
  private val FrameMagic = 0x184d2204

  private def maxBlockBytes(in: Array[Byte], at: Int): Int = {
    val flags = in(at + 4)
    val sizeCode = in(at + 5)
    val isFrame = LittleEndian.int(in, at) == FrameMagic && (flags & 0xc0) == 0x40
    if (!isFrame || (flags & 0x03) != 0 || (sizeCode & 0x8f) != 0) {
      throw new DamagedBytesException("not an lz4 frame")
    }
    if ((flags & 0x20) == 0) {
      throw new DamagedBytesException("dependent blocks are not part of Kafka's format")
    }
    sizeCode >> 4 match {
      case code @ (4 | 5 | 6 | 7) => 1 << (8 + 2 * code)
      case code => throw new DamagedBytesException(s"block size code $code does not exist")
    }
  }

  private def intAt(in: Array[Byte], at: Int, end: Int): Int = {
    if (end - at < 4) throw new DamagedBytesException("frame is cut short")
    LittleEndian.int(in, at)
  }
}
