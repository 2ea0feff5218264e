package klog.spark

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets
import java.nio.{ByteBuffer, ByteOrder}
import java.util.{Map => JavaMap}

import com.fasterxml.jackson.databind.ObjectMapper
import net.razorvine.pickle.Unpickler

/** What travels between the shim and Python: pickles that Spark hands on unread.
  *
  * The rule: a pickle that calls one function of klog with bytes carries a request to a data source whose
  * options stay as they are. Nothing else is written; what Python answers are plain values.
  */
object PickledRequest {
  private val mapper = new ObjectMapper
  private val ReadModule = "klog.connector.source.jvm_request"
  private val WriteModule = "klog.connector.sink.jvm_write"

  /** Returns the pickle of a data source that has been given a request.
    *
    * @param dataSource
    *   the data source, pickled
    * @param request
    *   JSON
    */
  def of(dataSource: Array[Byte], request: String): Array[Byte] =
    call(ReadModule, "with_request", dataSource, request.getBytes(StandardCharsets.UTF_8))

  /** Returns the pickle of the message of a task to Python's commit.
    *
    * @param message
    *   JSON
    */
  def commitMessage(message: String): Array[Byte] =
    call(WriteModule, "commit_message", message.getBytes(StandardCharsets.UTF_8))

  /** Returns the plan that a pickled writer of klog has, as JSON. */
  def writePlan(writer: Array[Byte]): String =
    mapper.writeValueAsString(new Unpickler().loads(writer).asInstanceOf[JavaMap[String, AnyRef]].get("plan"))

  private def call(module: String, function: String, arguments: Array[Byte]*): Array[Byte] = {
    val out = new ByteArrayOutputStream
    out.write(Array(0x80.toByte, 3.toByte, 'c'.toByte))
    out.write(s"$module\n$function\n(".getBytes(StandardCharsets.US_ASCII))
    arguments.foreach { bytes =>
      out.write('B')
      out.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).array)
      out.write(bytes)
    }
    out.write("tR.".getBytes(StandardCharsets.US_ASCII))
    out.toByteArray
  }

  /** Returns the value of a pickled `InputPartition` of PySpark. */
  def partitionValue(pickled: Array[Byte]): AnyRef =
    new Unpickler().loads(pickled).asInstanceOf[JavaMap[String, AnyRef]].get("value")
}
