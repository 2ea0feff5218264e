package org.apache.spark.shuffle

import java.io._
import java.nio.ByteBuffer

import scala.reflect.ClassTag

import org.apache.spark.serializer._

/** Java's serialization, but each value by itself: its bytes mean the same wherever they lie. */
final class SelfContainedSerializer extends Serializer with Serializable {
  override def newInstance(): SerializerInstance = new SerializerInstance {
    override def serializeStream(stream: OutputStream): SerializationStream = new SerializationStream {
      private val out = new DataOutputStream(stream)
      override def writeObject[T: ClassTag](value: T): SerializationStream = {
        val bytes = new ByteArrayOutputStream
        new ObjectOutputStream(bytes).writeObject(value)
        out.writeInt(bytes.size)
        bytes.writeTo(out)
        this
      }
      override def flush(): Unit = out.flush()
      override def close(): Unit = out.close()
    }

    override def deserializeStream(stream: InputStream): DeserializationStream = new DeserializationStream {
      private val in = new DataInputStream(stream)
      override def readObject[T: ClassTag](): T = {
        val bytes = in.readNBytes(in.readInt())
        new ObjectInputStream(new ByteArrayInputStream(bytes)).readObject().asInstanceOf[T]
      }
      override def close(): Unit = in.close()
    }

    override def serialize[T: ClassTag](value: T): ByteBuffer = throw new UnsupportedOperationException
    override def deserialize[T: ClassTag](bytes: ByteBuffer): T = throw new UnsupportedOperationException
    override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T =
      throw new UnsupportedOperationException
  }
}
