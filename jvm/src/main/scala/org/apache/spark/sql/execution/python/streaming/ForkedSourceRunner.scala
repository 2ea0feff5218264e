package org.apache.spark.sql.execution.python.streaming

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream}
import java.lang.invoke.{MethodHandles, MethodType}
import java.nio.channels.{Channels, SocketChannel}
import java.util.concurrent.{ExecutionException, FutureTask}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.api.python.{PythonFunction, PythonWorker, PythonWorkerUtils, SpecialLengths}
import org.apache.spark.internal.config.BUFFER_SIZE
import org.apache.spark.internal.config.Python.{PYTHON_AUTH_SOCKET_TIMEOUT, PYTHON_USE_DAEMON}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** The Python process of a stream's reader, forked from a daemon of Spark's.
  *
  * The rule: Python gets what Spark's runner sends. But Spark starts an interpreter for each stream, which
  * imports PySpark for a second before the stream starts. A daemon of Spark's has done that import, and ends
  * with the Spark context, as the daemons of its other workers. What a fork imports itself, it imports while
  * the program goes from `load()` to `start()`.
  */
final class ForkedSourceRunner(reader: PythonFunction, schema: StructType)
    extends PythonStreamingSourceRunner(reader, schema) {
  private val env = SparkEnv.get
  private val forks = new Forks(reader, env)
  private var forked: Option[PythonWorker] = None

  override def init(): Unit = {
    val worker = createUninterrupted()
    forked = Some(worker)
    try start(blocking(worker))
    catch {
      case exc: Throwable =>
        stop()
        throw exc
    }
  }

  override def stop(): Unit = for (worker <- forked) {
    forked = None
    try forks.destroy(worker)
    catch { case NonFatal(exc) => logError("The Python process of a stream could not be killed", exc) }
    finally worker.stop()
  }

  /** Creates the fork on another thread: if Spark is interrupted meanwhile, which is how a stream is stopped, it
    * ends the daemon, and with it the processes of all streams.
    */
  private def createUninterrupted(): PythonWorker = {
    val creation = new FutureTask[PythonWorker](() => forks.create())
    Forks.runInBackground(creation.run())
    try creation.get()
    catch {
      case exc: InterruptedException =>
        Forks.runInBackground(Try(forks.destroy(creation.get())))
        throw exc
      case exc: ExecutionException => throw exc.getCause
    }
  }

  /** Sends the reader to a worker, and lets Spark's methods talk to it. */
  private def start(channel: SocketChannel): Unit = {
    val bufferSize = env.conf.get(BUFFER_SIZE)
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

  /** Returns the channel to a worker without the selector that Spark uses for forks: its runner blocks. */
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

  def create(): PythonWorker = env.createPythonWorker(reader.pythonExec, module, environment, true)._1

  def release(worker: PythonWorker): Unit =
    env.releasePythonWorker(reader.pythonExec, module, environment, worker)

  def destroy(worker: PythonWorker): Unit =
    env.destroyPythonWorker(reader.pythonExec, module, environment, worker)
}

private object Forks {
  def runInBackground(work: => Unit): Unit = {
    val thread = new Thread(() => work, "klog-stream-process")
    thread.setDaemon(true)
    thread.start()
  }
}

object ForkedSourceRunner {

  /** Returns whether Spark forks Python processes here. */
  def isPossible: Boolean =
    Option(SparkEnv.get).exists(_.conf.get(PYTHON_USE_DAEMON)) &&
      !System.getProperty("os.name").startsWith("Windows")

  /** Creates a fork for a stream that will start soon. It returns at once. What fails will fail again when the
    * stream starts, and is an error then.
    */
  def prepare(reader: PythonFunction): Unit = if (isPossible) {
    val env = SparkEnv.get
    Forks.runInBackground {
      Try {
        val forks = new Forks(reader, env)
        forks.release(forks.create())
      }
    }
  }

  /** Throws if Spark lacks what is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method is missing
    */
  def probe(): Unit = {
    val (text, out, in) = (classOf[String], classOf[DataOutputStream], classOf[DataInputStream])
    classOf[PythonStreamingSourceRunner].getConstructor(classOf[PythonFunction], classOf[StructType])
    setter("dataOut", out)
    setter("dataIn", in)
    Seq("selectionKey", "selector", "channel").foreach(classOf[PythonWorker].getMethod(_))
    val utils = PythonWorkerUtils.getClass
    utils.getMethod("writePythonVersion", text, out)
    utils.getMethod("writeSparkFiles", classOf[Option[_]], classOf[Set[_]], out)
    utils.getMethod("writePythonFunction", classOf[PythonFunction], out)
    utils.getMethod("writeUTF", text, out)
    utils.getMethod("readUTF", in)
    SpecialLengths.getClass.getMethod("PYTHON_EXCEPTION_THROWN")
    QueryCompilationErrors.getClass.getMethod("pythonDataSourceError", text, text, text)
    val function = Seq("pythonVer", "pythonIncludes", "pythonExec", "envVars")
    function.foreach(classOf[PythonFunction].getMethod(_))
    // `getMethod` would load the classes of all methods of SparkEnv, which pip's Spark 4.3 does not have.
    def find(name: String, result: Class[_], lastParameter: Class[_]): Unit = {
      val signature =
        MethodType.methodType(result, classOf[String], classOf[String], classOf[Map[_, _]], lastParameter)
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
