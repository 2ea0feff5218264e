package klog.codecs

/** Decompresses the records of one batch into an array, within the room that it has there.
  *
  * The rule (docs/format.md, 5): framings are Kafka's. What a codec's library does not check, its
  * decompressor does.
  */
trait Decompressor {

  /** Decompresses bytes.
    *
    * @param magic
    *   the message format of the batch
    * @return
    *   the size in bytes, or [[Decompressor.DoesNotFit]]
    * @throws DamagedBytesException
    *   if the bytes are not of the codec
    */
  def decompress(in: Array[Byte], inAt: Int, inEnd: Int, out: Array[Byte], outAt: Int, magic: Int): Int
}

object Decompressor {

  /** The bytes have more room than is left. */
  val DoesNotFit: Int = -1
}

/** Bytes are not what their codec makes. */
final class DamagedBytesException(reason: String, cause: Throwable = null)
    extends RuntimeException(reason, cause)
