package klog.spark

import java.util.{Map => JavaMap, Optional}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.datasources.v2.python.KlogPythonBridge
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A stream's scan. Its columns are those of the table, and nothing is pushed to it. It tells of the micro-batch
  * that was planned last: Spark asks for its metrics when it has planned one, and EXPLAIN of a query that runs
  * shows the last one.
  */
final class StreamScanBuilder(planner: PythonPlanner, schema: StructType, engine: Engine)
    extends ScanBuilder
    with Scan {
  private lazy val python = planner.streamScan(schema)

  /** The stream, once it runs. */
  @volatile private var stream: Option[KlogStream] = None

  override def build(): Scan = this
  override def readSchema(): StructType = schema
  override def description(): String =
    s"engine=${reader.getOrElse(engine.toString.toLowerCase)}, columns: ${schema.fieldNames.mkString(",")}"
  override def supportedCustomMetrics(): Array[CustomMetric] = ReadMetrics.all
  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    ReadMetrics.driverValues(stream.flatMap(_.refusal).exists(_.nonEmpty))

  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = {
    val pythonStream = python.toMicroBatchStream(checkpoint).asInstanceOf[PythonStream]
    val started = new KlogStream(pythonStream, schema, planner.options, engine)
    stream = Some(started)
    started
  }

  /** Which engine reads the last micro-batch, and why if it is Python; None before the first one. */
  private def reader: Option[String] =
    stream.flatMap(_.refusal).map(reason => if (reason.isEmpty) "jvm" else s"python ($reason)")
}

/** A stream: Python says how far a micro-batch reads and plans it, the JVM reads it if it can.
  *
  * The rule: the offsets are Python's, so a stream may change engines at a restart. A micro-batch with a
  * slice that the JVM cannot read is Python's as a whole.
  */
final class KlogStream(
    python: PythonStream,
    schema: StructType,
    options: CaseInsensitiveStringMap,
    engine: Engine
) extends MicroBatchStream
    with SupportsTriggerAvailableNow
    with ReportsSourceMetrics {
  import KlogStream._

  /** Python's factory, once a micro-batch was left to Python. */
  private var pythonFactory: Option[PartitionReaderFactory] = None

  /** Why the last micro-batch was left to Python; empty if it was not. None before the first one. */
  @volatile private var lastRefusal: Option[String] = None
  def refusal: Option[String] = lastRefusal

  /** The stores of the slices of a micro-batch, once the JVM reads one. */
  private var stores: Option[TaskStores] = None
  private val currentStores = new CurrentStores

  override def initialOffset(): Offset = python.initialOffset()
  override def latestOffset(): Offset = python.latestOffset()
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = python.latestOffset(start, limit)
  override def reportLatestOffset(): Offset = python.reportLatestOffset()
  override def getDefaultReadLimit: ReadLimit = python.getDefaultReadLimit
  override def prepareForTriggerAvailableNow(): Unit = python.prepareForTriggerAvailableNow()
  override def deserializeOffset(json: String): Offset = python.deserializeOffset(json)
  override def commit(end: Offset): Unit = python.commit(end)
  override def stop(): Unit = python.stop()
  override def toString: String = python.toString

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val planned = python.planInputPartitions(start, end)
    val summary = planned.headOption.map(first => PlanSummary.of(KlogPythonBridge.taskOf(first)))
    val tasks = planned.drop(1).map(KlogPythonBridge.taskOf).toSeq
    val reason = summary.fold("")(_.refusal(options))
    val isPython = engine.isPython(reason)
    lastRefusal = Some(reason)
    if (isPython) {
      if (pythonFactory.isEmpty) pythonFactory = Some(python.createReaderFactory())
      planned.tail
    } else {
      for (plan <- summary if plan.files.nonEmpty || stores.isEmpty)
        stores = Some(currentStores.of(plan.schemes, options))
      tasks.map(new SliceInputPartition(_)).toArray
    }
  }

  override def createReaderFactory(): PartitionReaderFactory =
    new StreamReaderFactory(
      stores.map(new SliceReaderFactory(schema, Long.MaxValue, Long.MinValue, _)),
      pythonFactory
    )

  override def metrics(latestConsumedOffset: Optional[Offset]): JavaMap[String, String] =
    (engineMetrics ++ Option(python.reportLatestOffset()).fold(NoMetrics)(offset =>
      metricsOf(offset.json)
    )).asJava

  /** Which engine has read the last micro-batch, and why if it is Python. */
  private def engineMetrics: Map[String, String] =
    lastRefusal.fold(Map.empty[String, String])(Engine.metrics)
}

object KlogStream {
  private val mapper = new ObjectMapper

  /** The key under which Python reports the metrics of a stream. */
  private val Metrics = "#metrics"

  private val NoMetrics = Map.empty[String, String]

  private def metricsOf(json: String): Map[String, String] =
    Option(mapper.readTree(json).get(Metrics)) match {
      case Some(metrics) =>
        metrics.properties.asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap
      case None => NoMetrics
    }
}

/** Reads slices in the JVM, and what Python has planned for itself in Python. */
private final class StreamReaderFactory(
    jvm: Option[PartitionReaderFactory],
    python: Option[PartitionReaderFactory]
) extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean =
    factoryOf(partition).supportColumnarReads(partition)

  override def createReader(
      partition: InputPartition
  ): PartitionReader[InternalRow] =
    factoryOf(partition).createReader(partition)

  override def createColumnarReader(
      partition: InputPartition
  ): PartitionReader[ColumnarBatch] =
    factoryOf(partition).createColumnarReader(partition)

  private def factoryOf(partition: InputPartition): PartitionReaderFactory =
    if (partition.isInstanceOf[SliceInputPartition]) jvm.get else python.get
}
