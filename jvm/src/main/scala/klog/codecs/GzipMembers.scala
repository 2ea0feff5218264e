package klog.codecs

import java.util.zip.{CRC32, DataFormatException, Inflater}

/** gzip: one or several members (RFC 1952), zeros after the last. */
final class GzipMembers extends Decompressor {
  private val inflater = new Inflater(true)

  override def decompress(
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      out: Array[Byte],
      outAt: Int,
      magic: Int
  ): Int = {
    var position = inAt
    var written = outAt
    var isOpen = true
    while (isOpen) {
      val start = skipHeader(in, position, inEnd)
      val size = inflate(in, start, inEnd, out, written)
      if (size == Decompressor.DoesNotFit) return Decompressor.DoesNotFit
      val trailer = start + inflater.getBytesRead.toInt
      checkTrailer(in, trailer, inEnd, out, written, size)
      position = trailer + GzipMembers.TrailerBytes
      written += size
      isOpen = position < inEnd && in(position) != 0
    }
    while (position < inEnd) {
      if (in(position) != 0) throw new DamagedBytesException("bytes follow the padding")
      position += 1
    }
    written - outAt
  }

  def close(): Unit = inflater.end()

  private def inflate(in: Array[Byte], start: Int, inEnd: Int, out: Array[Byte], outAt: Int): Int = {
    inflater.reset()
    inflater.setInput(in, start, inEnd - start)
    var written = outAt
    try {
      while (!inflater.finished) {
        val size = inflater.inflate(out, written, out.length - written)
        written += size
        if (inflater.finished) return written - outAt
        if (inflater.needsDictionary) throw new DamagedBytesException("a dictionary is needed")
        if (size == 0 && written == out.length) return Decompressor.DoesNotFit
        if (size == 0 && inflater.needsInput) throw new DamagedBytesException("stream ends early")
      }
    } catch {
      case exc: DataFormatException => throw new DamagedBytesException(exc.getMessage, exc)
    }
    written - outAt
  }

  private def skipHeader(in: Array[Byte], start: Int, end: Int): Int = {
    if (end - start < 10) throw new DamagedBytesException("stream ends early")
    if (in(start) != 0x1f || in(start + 1) != 0x8b.toByte || in(start + 2) != 8) {
      throw new DamagedBytesException("incorrect header check")
    }
    val flags = in(start + 3)
    if ((flags & 0xe0) != 0) throw new DamagedBytesException("unknown header flags set")
    var position = start + 10
    if ((flags & 0x04) != 0) {
      if (end - position < 2) throw new DamagedBytesException("stream ends early")
      position += 2 + (in(position) & 0xff) + ((in(position + 1) & 0xff) << 8)
    }
    if ((flags & 0x08) != 0) position = afterZero(in, position, end)
    if ((flags & 0x10) != 0) position = afterZero(in, position, end)
    if ((flags & 0x02) != 0) {
      checkHeaderCrc(in, start, position, end)
      position += 2
    }
    if (position > end) throw new DamagedBytesException("stream ends early")
    position
  }

  private def afterZero(in: Array[Byte], start: Int, end: Int): Int = {
    var position = start
    while (position < end && in(position) != 0) position += 1
    position + 1
  }

  private def checkHeaderCrc(in: Array[Byte], start: Int, position: Int, end: Int): Unit = {
    if (end - position < 2) throw new DamagedBytesException("stream ends early")
    val crc = new CRC32
    crc.update(in, start, position - start)
    val stored = (in(position) & 0xff) | ((in(position + 1) & 0xff) << 8)
    if ((crc.getValue & 0xffff) != stored) throw new DamagedBytesException("header crc mismatch")
  }

  private def checkTrailer(
      in: Array[Byte],
      trailer: Int,
      inEnd: Int,
      out: Array[Byte],
      outAt: Int,
      size: Int
  ): Unit = {
    if (inEnd - trailer < GzipMembers.TrailerBytes) throw new DamagedBytesException("stream ends early")
    val crc = new CRC32
    crc.update(out, outAt, size)
    if (crc.getValue.toInt != LittleEndian.int(in, trailer)) {
      throw new DamagedBytesException("incorrect data check")
    }
    if (size != LittleEndian.int(in, trailer + 4)) {
      throw new DamagedBytesException("incorrect length check")
    }
  }
}

object GzipMembers {
  private val TrailerBytes = 8
}
