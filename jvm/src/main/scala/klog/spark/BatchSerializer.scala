package klog.spark

import java.io.{DataInputStream, DataOutputStream, EOFException, InputStream, IOException, OutputStream}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import scala.reflect.ClassTag

import org.apache.spark.serializer.{
  DeserializationStream,
  SerializationStream,
  Serializer,
  SerializerInstance
}

import klog.codecs.{DamagedBytesException, GrowingBytes, Lz4Frame, Lz4Writer}
import klog.logformat.BatchHeader
import klog.staging.{BatchKey, EncodedBatch}

/** How batches lie in a shuffle: a key and a batch in turns, between tasks of one driver.
  *
  * {{{
  * key     topic length int16, topic UTF-8 | partition int32 | task int32 | number int32
  * batch   minTimestampMs int64 | plainBytes int32 | compressNanos int64 | isPartial int8 | length int32 | data
  * }}}
  *
  * The rule: a full batch lies there as it goes to the log, a partial one in an lz4 frame, whatever the codec
  * of the topic. Tasks that have little for each of many partitions leave nothing else.
  */
final class BatchSerializer extends Serializer with Serializable {
  override def newInstance(): SerializerInstance = new BatchStreams
}

private final class BatchStreams extends SerializerInstance {
  override def serializeStream(out: OutputStream): SerializationStream = new BatchOutput(out)
  override def deserializeStream(in: InputStream): DeserializationStream = new BatchInput(in)

  override def serialize[T: ClassTag](value: T): ByteBuffer = notInShuffle
  override def deserialize[T: ClassTag](bytes: ByteBuffer): T = notInShuffle
  override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T = notInShuffle

  private def notInShuffle: Nothing = throw new UnsupportedOperationException("a shuffle has streams only")
}

private final class BatchOutput(stream: OutputStream) extends SerializationStream {
  private val out = new DataOutputStream(stream)
  private val lz4 = new Lz4Writer(Lz4Writer.FastLevel)

  override def writeObject[T: ClassTag](value: T): SerializationStream = {
    value match {
      case key: BatchKey => write(key)
      case batch: EncodedBatch => write(batch)
      case other => throw new IllegalArgumentException(s"neither a key nor a batch: $other")
    }
    this
  }

  override def flush(): Unit = out.flush()
  override def close(): Unit = out.close()

  private def write(key: BatchKey): Unit = {
    val topic = key.topic.getBytes(UTF_8)
    out.writeShort(topic.length)
    out.write(topic)
    out.writeInt(key.partition)
    out.writeInt(key.task)
    out.writeInt(key.number)
  }

  private def write(batch: EncodedBatch): Unit = {
    out.writeLong(batch.minTimestampMs)
    out.writeInt(batch.plainBytes)
    out.writeLong(batch.compressNanos)
    out.writeBoolean(batch.isPartial)
    if (batch.isPartial) {
      val packed = new GrowingBytes
      lz4.compress(batch.data, 0, batch.data.length, packed)
      writeBytes(packed.data, packed.end)
    } else writeBytes(batch.data, batch.data.length)
  }

  private def writeBytes(bytes: Array[Byte], size: Int): Unit = {
    out.writeInt(size)
    out.write(bytes, 0, size)
  }
}

private final class BatchInput(stream: InputStream) extends DeserializationStream {
  private val in = new DataInputStream(stream)
  private val lz4 = new Lz4Frame

  override def readObject[T: ClassTag](): T =
    throw new UnsupportedOperationException("keys and batches come in turns")

  /** Ends as Spark wants it: before a key. */
  override def readKey[T: ClassTag](): T = {
    val first = in.read()
    if (first < 0) throw new EOFException
    complete {
      val topic = new Array[Byte]((first << 8) | in.readUnsignedByte())
      in.readFully(topic)
      BatchKey(new String(topic, UTF_8), in.readInt(), in.readInt(), in.readInt()).asInstanceOf[T]
    }
  }

  override def readValue[T: ClassTag](): T = complete {
    val (minTimestampMs, plainBytes, compressNanos) = (in.readLong(), in.readInt(), in.readLong())
    val isPartial = in.readBoolean()
    val bytes = new Array[Byte](checked(in.readInt(), if (isPartial) 0 else BatchHeader.HeaderBytes))
    in.readFully(bytes)
    val data = if (isPartial) unpacked(bytes, checked(plainBytes, BatchHeader.HeaderBytes)) else bytes
    new EncodedBatch(data, minTimestampMs, plainBytes, compressNanos, isPartial).asInstanceOf[T]
  }

  private def checked(length: Int, minBytes: Int): Int =
    if (length < minBytes || length > EncodedBatch.MaxBytes) throw damaged(s"a batch of $length bytes")
    else length

  private def unpacked(frame: Array[Byte], size: Int): Array[Byte] = {
    val data = new Array[Byte](size)
    val written =
      try lz4.decompress(frame, 0, frame.length, data, 0, magic = 2)
      catch { case exc: DamagedBytesException => throw damaged(exc.getMessage, exc) }
    if (written != size) throw damaged(s"a partial batch has not $size bytes")
    data
  }

  override def close(): Unit = in.close()

  /** An end elsewhere would look to Spark as if there were no more batches. */
  private def complete[T](read: => T): T =
    try read
    catch { case exc: EOFException => throw damaged("they end early", exc) }

  private def damaged(reason: String, cause: Throwable = null) = new IOException(
    s"Spark's shuffle has damaged the batches of this write: $reason. Run it again, or set distributionMode=none",
    cause
  )
}
