package klog.codecs

/** Compresses the records of a batch, framed as Kafka's writers frame them (docs/format.md, 5). */
trait Compressor extends AutoCloseable {

  /** Compresses some bytes of an array, and adds the result to the output. */
  def compress(in: Array[Byte], at: Int, size: Int, out: GrowingBytes): Unit

  override def close(): Unit = ()
}

object Compressor {

  /** Returns the compressor of a codec; None for `none`.
    *
    * @param level
    *   in Kafka's range for the codec; None for its default
    */
  def of(codec: Int, level: Option[Int]): Option[Compressor] = codec match {
    case 0 => None
    case 1 => Some(new GzipWriter(level.getOrElse(GzipWriter.DefaultLevel)))
    case 2 => Some(new SnappyWriter)
    case 3 => Some(new Lz4Writer(level.getOrElse(Lz4Writer.FastLevel)))
    case 4 => Some(new ZstdWriter(level.getOrElse(ZstdWriter.DefaultLevel)))
  }
}
