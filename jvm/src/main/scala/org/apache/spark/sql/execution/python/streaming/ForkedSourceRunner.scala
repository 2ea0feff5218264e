package org.apache.spark.sql.execution.python.streaming

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream}
import java.lang.invoke.{MethodHandles, MethodType}
import java.nio.channels.{Channels, SocketChannel}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.SparkEnv
import org.apache.spark.api.python.{PythonFunction, PythonWorker, PythonWorkerUtils, SpecialLengths}
import org.apache.spark.internal.config.BUFFER_SIZE
import org.apache.spark.internal.config.Python.PYTHON_AUTH_SOCKET_TIMEOUT
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** The Python process of a stream's reader, forked from a daemon of Spark's.
  *
  * The rule: what is said to Python is what Spark's runner says. But Spark starts an interpreter for each
  * stream, which imports PySpark for a second before the stream starts. A daemon of Spark's has done that
  * import, and Spark stops it with the session, as the daemons of its other workers. What a fork imports
  * itself, it imports while the program goes from `load()` to `start()`.
  */
final class ForkedSourceRunner(reader: PythonFunction, schema: StructType)
    extends PythonStreamingSourceRunner(reader, schema) {
  private val conf = SparkEnv.get.conf
  private val forks = new Forks(reader, SparkEnv.get)
  private var forked: Option[PythonWorker] = None

  override def init(): Unit = {
    val worker = forks.take()
    forked = Some(worker)
    try start(blocking(worker))
    catch {
      case exc: Throwable =>
        stop()
        throw exc
    }
  }

  override def stop(): Unit = {
    forked.foreach(forks.destroy)
    forked = None
  }

  /** Hands the reader to a worker, and lets Spark's methods talk to it. */
  private def start(channel: SocketChannel): Unit = {
    val bufferSize = conf.get(BUFFER_SIZE)
    val out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel), bufferSize))
    PythonWorkerUtils.writePythonVersion(reader.pythonVer, out)
    PythonWorkerUtils.writeSparkFiles(Some("streaming_job"), reader.pythonIncludes.asScala.toSet, out)
    PythonWorkerUtils.writePythonFunction(reader, out)
    PythonWorkerUtils.writeUTF(schema.json, out)
    out.writeInt(SQLConf.get.arrowMaxRecordsPerBatch)
    out.flush()
    val in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), bufferSize))
    if (in.readInt() == SpecialLengths.PYTHON_EXCEPTION_THROWN)
      throw QueryCompilationErrors.pythonDataSourceError(
        "plan",
        "initialize source",
        PythonWorkerUtils.readUTF(in)
      )
    ForkedSourceRunner.setter("dataOut", classOf[DataOutputStream]).invoke(this, out)
    ForkedSourceRunner.setter("dataIn", classOf[DataInputStream]).invoke(this, in)
  }

  /** Returns the channel to a worker as Spark's runner of a stream wants it; Spark selects on those of forks. */
  private def blocking(worker: PythonWorker): SocketChannel = {
    worker.selectionKey.cancel()
    worker.selector.close()
    worker.channel.configureBlocking(true)
    worker.channel
  }
}

/** The forks for the readers of streams. Spark keeps those that are free for a minute.
  *
  * @param reader
  *   says which Python, and with which environment
  */
private final class Forks(reader: PythonFunction, env: SparkEnv) {
  private val module = "pyspark.sql.streaming.python_streaming_source_runner"
  private val environment = reader.envVars.asScala.toMap ++ Map(
    "SPARK_LOCAL_DIRS" -> env.blockManager.diskBlockManager.localDirs.map(_.getPath).mkString(","),
    "SPARK_AUTH_SOCKET_TIMEOUT" -> env.conf.get(PYTHON_AUTH_SOCKET_TIMEOUT).toString,
    "SPARK_BUFFER_SIZE" -> env.conf.get(BUFFER_SIZE).toString,
    "SPARK_PYTHON_RUNTIME" -> "PYTHON_WORKER"
  )

  def take(): PythonWorker = env.createPythonWorker(reader.pythonExec, module, environment, true)._1

  def free(worker: PythonWorker): Unit =
    env.releasePythonWorker(reader.pythonExec, module, environment, worker)

  def destroy(worker: PythonWorker): Unit =
    env.destroyPythonWorker(reader.pythonExec, module, environment, worker)
}

object ForkedSourceRunner {

  /** Has a fork made for a stream that will start soon. It returns at once; what fails will fail again when
    * the stream starts, and is told then.
    */
  def prepare(reader: PythonFunction): Unit = {
    val forks = new Forks(reader, SparkEnv.get)
    val thread = new Thread(() => Try(forks.free(forks.take())), "klog-stream-process")
    thread.setDaemon(true)
    thread.start()
  }

  /** Throws if Spark's runner lacks what is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method is missing
    */
  def probe(): Unit = {
    setter("dataOut", classOf[DataOutputStream])
    setter("dataIn", classOf[DataInputStream])
    classOf[PythonWorker].getMethod("selectionKey")
    // `getMethod` would load the classes of all methods of SparkEnv, which pip's Spark 4.3 does not have.
    def find(name: String, returned: Class[_], last: Class[_]): Unit = {
      val signature =
        MethodType.methodType(returned, classOf[String], classOf[String], classOf[Map[_, _]], last)
      MethodHandles.lookup.findVirtual(classOf[SparkEnv], name, signature)
    }
    find("createPythonWorker", classOf[(_, _)], classOf[Boolean])
    find("releasePythonWorker", classOf[Unit], classOf[PythonWorker])
    find("destroyPythonWorker", classOf[Unit], classOf[PythonWorker])
  }

  private def setter(name: String, value: Class[_]) = {
    val method = classOf[PythonStreamingSourceRunner].getDeclaredMethod(s"${name}_$$eq", value)
    method.setAccessible(true)
    method
  }
}
