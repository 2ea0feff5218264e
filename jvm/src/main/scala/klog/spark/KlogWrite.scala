package klog.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.staging.WriteCounts

/** A write that Python runs, and why. */
final class PythonKlogWrite(python: Write, reason: String, progress: SinkProgress) extends Write {
  override def description(): String = s"klog engine=python ($reason)"
  override def toString: String = description()
  override def toBatch: BatchWrite = python.toBatch
  override def toStreaming: StreamingWrite =
    new PythonKlogStreamingWrite(python.toStreaming, reason, progress)
  override def supportedCustomMetrics(): Array[CustomMetric] = python.supportedCustomMetrics
  override def reportDriverMetrics(): Array[CustomTaskMetric] = python.reportDriverMetrics
}

/** The write of one micro-batch that Python runs, and why. */
final class PythonKlogStreamingWrite(python: StreamingWrite, reason: String, progress: SinkProgress)
    extends StreamingWrite {
  override def toString: String = s"klog engine=python ($reason)"
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    python.createStreamingWriterFactory(info)
  override def useCommitCoordinator(): Boolean = python.useCommitCoordinator
  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = {
    python.commit(epoch, messages)
    progress.setPython(reason)
  }
  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = python.abort(epoch, messages)
}

/** A write whose tasks the JVM runs.
  *
  * The rule: Python's own write makes the plan, once for a batch and once for each micro-batch, and gets the
  * messages of the tasks for its commit. Spark asks a task for its metrics before it has committed, when most is
  * still to be written. So the driver reports those of a batch, from the messages; those of a micro-batch are in
  * the progress of its stream.
  *
  * @param sink
  *   what it has in common with the other writes of its table
  */
final class KlogWrite(
    python: Write,
    schema: StructType,
    options: CaseInsensitiveStringMap,
    sink: SinkState
) extends Write {
  private lazy val batch = python.toBatch
  private var isStream = false
  private var written: Option[WriteCounts] = None

  /** The tasks of a batch. */
  lazy val tasks: PlannedTasks = new PlannedTasks(
    {
      batch.createBatchWriterFactory(NoPhysicalInfo)
      KlogPythonBridge.plannedWriter(batch)
    },
    schema,
    options,
    sink,
    isStream = false
  )

  override def description(): String = s"klog engine=jvm, topic ${options.get("topic")}"
  override def toString: String = description()

  override def toBatch: BatchWrite = new BatchWrite {
    override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
      new StagingWriterFactory(tasks.work)
    override def useCommitCoordinator(): Boolean = batch.useCommitCoordinator
    override def commit(messages: Array[WriterCommitMessage]): Unit = {
      try batch.commit(StagedMessage.toPython(messages))
      finally tasks.end()
      written = Some(StagedMessage.total(messages))
    }
    override def abort(messages: Array[WriterCommitMessage]): Unit =
      try batch.abort(StagedMessage.toPython(messages))
      finally tasks.end()
  }

  override def toStreaming: StreamingWrite = {
    isStream = true
    new KlogStreamingWrite(python.toStreaming, schema, options, sink)
  }

  override def supportedCustomMetrics(): Array[CustomMetric] =
    if (isStream) Array.empty else WriteMetrics.ofBatches.all

  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    written.fold(Array.empty[CustomTaskMetric])(WriteMetrics.ofBatches.values)
}

/** The write of one micro-batch, or of a stream that Spark runs as one write. */
final class KlogStreamingWrite(
    python: StreamingWrite,
    schema: StructType,
    options: CaseInsensitiveStringMap,
    sink: SinkState
) extends StreamingWrite {

  /** The tasks of a micro-batch. */
  lazy val tasks: PlannedTasks = new PlannedTasks(
    {
      python.createStreamingWriterFactory(NoPhysicalInfo)
      KlogPythonBridge.plannedWriter(python)
    },
    schema,
    options,
    sink,
    isStream = true
  )

  override def toString: String = s"klog engine=jvm, topic ${options.get("topic")}"

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    new StagingWriterFactory(tasks.work)
  override def useCommitCoordinator(): Boolean = python.useCommitCoordinator

  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = {
    try python.commit(epoch, StagedMessage.toPython(messages))
    finally tasks.end()
    sink.progress.setJvm(StagedMessage.total(messages))
  }

  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit =
    try python.abort(epoch, StagedMessage.toPython(messages))
    finally tasks.end()
}

/** Python plans without knowing how many tasks there will be. */
private object NoPhysicalInfo extends PhysicalWriteInfo {
  override def numPartitions(): Int = 0
}
