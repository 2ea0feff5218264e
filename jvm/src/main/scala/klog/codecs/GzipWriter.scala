package klog.codecs

import java.util.zip.{CRC32, Deflater}

/** gzip: one member, with the header that the JDK writes. */
final class GzipWriter(level: Int) extends Compressor {
  private val deflater = new Deflater(level, true)

  override def compress(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit = {
    out.add(GzipWriter.Header, 0, GzipWriter.Header.length)
    deflater.reset()
    deflater.setInput(in, at, size)
    deflater.finish()
    while (!deflater.finished) {
      out.reserve(GzipWriter.StepBytes)
      out.end += deflater.deflate(out.data, out.end, out.data.length - out.end)
    }
    val crc = new CRC32
    crc.update(in, at, size)
    out.addLittleEndian(crc.getValue.toInt)
    out.addLittleEndian(size)
  }

  override def close(): Unit = deflater.end()
}

object GzipWriter {
  val DefaultLevel: Int = Deflater.DEFAULT_COMPRESSION
  private val Header = Array[Byte](0x1f, 0x8b.toByte, 8, 0, 0, 0, 0, 0, 0, -1)
  private val StepBytes = 4096
}
