package klog.codecs

import com.github.luben.zstd.{Zstd, ZstdCompressCtx}

/** zstd: one frame, without content size and checksum. */
final class ZstdWriter(level: Int) extends Compressor {
  private val context = new ZstdCompressCtx().setLevel(level).setContentSize(false).setChecksum(false)

  override def compress(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit = {
    val maxBytes = Zstd.compressBound(size.toLong).toInt
    out.reserve(maxBytes)
    out.end += context.compressByteArray(out.data, out.end, maxBytes, in, at, size)
  }

  override def close(): Unit = context.close()
}

object ZstdWriter {
  val DefaultLevel: Int = 3
}
