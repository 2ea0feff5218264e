package klog.spark

import java.io.{IOException, PrintWriter, StringWriter}

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import net.razorvine.pickle.Pickler
import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.util.SerializableConfiguration

import klog.store.{FailingFileSystem, StorageSettings}

/** The errors of tasks show no secret of the options, of Hadoop's configuration or of a URL. */
class SecretsInErrorsSuite extends munit.FunSuite {
  import SecretsInErrorsSuite._

  private val message =
    "GET https://canary1:canary2@server/a.log?token=canary3&b=canary3 failed, key canary4, token canary5, bucket canary6"
  private val hidden = "GET https://***@server/a.log?*** failed, key ***, token ***, bucket ***"

  private def stores(message: String, failure: String): TaskStores = {
    val configuration = new Configuration
    configuration.set("fs.s3a.impl", classOf[FailingFileSystem].getName)
    configuration.set("fs.klog-test.failure", s"open $failure")
    configuration.set("fs.klog-test.message", message)
    configuration.set("fs.s3a.session.token", "canary5")
    configuration.set("fs.s3a.bucket.orders.secret.key", "canary6")
    val settings = StorageSettings(Map("secret_access_key" -> "canary4"))
    TaskStores(settings, Some(new LocalBroadcast(new SerializableConfiguration(configuration))), "a client")
  }

  private def readError(message: String, failure: String): RuntimeException = {
    val schema = new StructType().add("offset", LongType)
    val factory = new SliceReaderFactory(schema, Long.MaxValue, Long.MinValue, stores(message, failure))
    val root = s"s3://secrets-${message.length}-${failure.toLowerCase}/root"
    val task = Map("value" -> List(sliceOf(root).asJava).asJava).asJava
    val reader = factory.createColumnarReader(new SliceInputPartition(new Pickler().dumps(task)))
    try intercept[RuntimeException](reader.next())
    finally reader.close()
  }

  private def writeError(message: String, failure: String): RuntimeException = intercept[RuntimeException] {
    new TaskWork("{}", new StructType, stores(message, failure), false, 0).classified {
      if (failure == "IOException") throw new IOException(message)
      else throw new IllegalStateException(message)
    }
  }

  for ((what, errorOf) <- Seq("read" -> readError _, "write" -> writeError _)) {
    for (failure <- Seq("IOException", "IllegalStateException"))
      test(s"$failure of a $what shows no secret, nor does its cause") {
        val error = errorOf(message, failure)
        assert(error.getMessage.contains(hidden), error.getMessage)
        val pythonClass = if (failure == "IOException") "StoreError" else "KlogError"
        assert(error.getMessage.contains(s"klog.errors.$pythonClass: "), error.getMessage)
        assert(!traceOf(error).contains("canary"), traceOf(error))
      }

    test(s"an error of a $what without a secret shows its cause") {
      val error = errorOf("no such bucket", "IOException")
      assert(error.getMessage.contains("no such bucket"), error.getMessage)
      assert(traceOf(error).contains("Caused by: java.io.IOException: no such bucket"), traceOf(error))
    }
  }
}

object SecretsInErrorsSuite {
  private def sliceOf(root: String) = Map[String, Any](
    "format" -> 1,
    "topic" -> "orders",
    "partition" -> 0,
    "topicId" -> "",
    "root" -> root,
    "path" -> s"$root/a.log",
    "isCommitted" -> true,
    "identity" -> "",
    "stamp" -> "",
    "fileSizeBytes" -> 1,
    "segmentSizeBytes" -> 1,
    "baseOffset" -> 0,
    "offsetShift" -> 0,
    "startPosition" -> 0,
    "endPosition" -> 1,
    "firstOffset" -> 0,
    "limitOffset" -> 1,
    "startOffset" -> 0,
    "endOffset" -> 1,
    "indexPath" -> "",
    "indexSizeBytes" -> 0,
    "crc32c" -> -1,
    "committedOnly" -> false,
    "aborted" -> java.util.List.of(),
    "markersEndOffset" -> -1,
    "areMarkersInFile" -> true
  )

  private def traceOf(error: Throwable): String = {
    val trace = new StringWriter
    error.printStackTrace(new PrintWriter(trace, true))
    trace.toString
  }

  /** What Spark would send to executors. */
  private final class LocalBroadcast[T: ClassTag](sent: T) extends Broadcast[T](0L) {
    override protected def getValue(): T = sent
    override protected def doUnpersist(blocking: Boolean): Unit = ()
    override protected def doDestroy(blocking: Boolean): Unit = ()
  }
}
