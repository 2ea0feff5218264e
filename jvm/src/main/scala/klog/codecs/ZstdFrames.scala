package klog.codecs

import com.github.luben.zstd.{Zstd, ZstdDecompressCtx, ZstdException}

/** zstd: one or several frames. The context is kept: to make one costs as much as a batch. */
final class ZstdFrames extends Decompressor {
  private val context = new ZstdDecompressCtx

  override def decompress(
      in: Array[Byte],
      inAt: Int,
      inEnd: Int,
      out: Array[Byte],
      outAt: Int,
      magic: Int
  ): Int = {
    if (inAt == inEnd) throw new DamagedBytesException("frame ends early")
    try context.decompressByteArray(out, outAt, out.length - outAt, in, inAt, inEnd - inAt)
    catch {
      case exc: ZstdException if exc.getErrorCode == Zstd.errDstSizeTooSmall => Decompressor.DoesNotFit
      case exc: ZstdException => throw new DamagedBytesException(exc.getMessage, exc)
    }
  }

  def close(): Unit = context.close()
}
