package klog.spark

import java.util.{List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2.python.{KlogPythonBridge, PythonDataSourceV2}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.store.SegmentStores

/** What Python says about a plan (`klog.connector.source.jvm_plan.PlanSummary`).
  *
  * @param pythonReason
  *   why Python has to read; empty if the shim can
  * @param files
  *   by root a file that is read
  * @param arePathsAscii
  *   whether every Java has names for the files
  * @param totalSegmentCount
  *   the segments of the partitions that the read names; -1 if Python does not know it
  * @param totalSizeBytes
  *   their bytes; -1 if Python does not know it
  * @param taskPartitions
  *   the partition number of each task; empty if a task reads several
  * @param aggregates
  *   those that commits know, by name: None is null
  */
final case class PlanSummary(
    pythonReason: String,
    files: Map[String, String],
    arePathsAscii: Boolean,
    segmentCount: Long,
    sizeBytes: Long,
    totalSegmentCount: Long,
    totalSizeBytes: Long,
    offsetCount: Long,
    taskPartitions: Seq[Int],
    aggregates: Map[String, Option[Long]]
) {

  /** Returns how much is read, of how much, for EXPLAIN. */
  def sizes: String = {
    def of(total: Long): String = if (total < 0) "" else s" of $total"
    s"$segmentCount${of(totalSegmentCount)} segments, $sizeBytes${of(totalSizeBytes)} bytes"
  }

  /** The schemes of the roots. */
  def schemes: Seq[String] = SegmentStores.schemes(files.keys)

  /** Returns why Python has to read, by the plan or as the JVM has no such store; empty if it has not. */
  def refusal(options: CaseInsensitiveStringMap): String =
    if (pythonReason.nonEmpty) pythonReason
    else if (!arePathsAscii && !JavaPaths.areUtf8) JavaPaths.Refusal
    else TaskStores.refusal(files, options)
}

object PlanSummary {
  private val Format = 2

  /** Returns the summary that a pickled partition has. Python has to read a plan of another version of klog. */
  def of(pickled: Array[Byte]): PlanSummary = {
    val values = PickledRequest.partitionValue(pickled).asInstanceOf[JavaMap[String, AnyRef]]
    def long(name: String): Long = values.get(name).asInstanceOf[Number].longValue
    val aggregates = values.get("aggregates").asInstanceOf[JavaMap[String, Number]].asScala
    val files = Option(values.get("files").asInstanceOf[JavaMap[String, String]])
    val otherVersion =
      s"klog's jar reads plans of format $Format, klog's Python makes format ${long("format")}: " +
        "start Spark with the jar that `klog jar` prints"
    PlanSummary(
      if (long("format") == Format) values.get("pythonReason").toString else otherVersion,
      files.fold(Map.empty[String, String])(_.asScala.toMap),
      values.get("arePathsAscii") == true,
      long("segmentCount"),
      long("sizeBytes"),
      long("totalSegmentCount"),
      long("totalSizeBytes"),
      long("offsetCount"),
      values.get("taskPartitions").asInstanceOf[JavaList[Integer]].asScala.map(_.intValue).toSeq,
      aggregates.view.mapValues(Option(_).map(_.longValue)).toMap
    )
  }
}

/** Asks Python to plan the reads of one table. Python alone plans: every rule about offsets is there. */
final class PythonPlanner(
    dataSource: PythonDataSourceV2,
    name: String,
    tableSchema: StructType,
    val options: CaseInsensitiveStringMap
) {
  private lazy val pickled = KlogPythonBridge.pickledDataSource(dataSource, name, options, tableSchema)

  /** Plans a batch.
    *
    * @param schema
    *   the columns to read
    * @param top
    *   the rows that are wanted by offset; None for all
    */
  def plan(schema: StructType, bounds: RowBounds, top: Option[TopRows]): PlannedRead = {
    val fields = Seq("bounds" -> bounds.toJava) ++ top.map("top" -> _.toJava)
    val request = PickledRequest.of(pickled, PythonPlanner.json(fields: _*))
    val planned = KlogPythonBridge.planBatch(dataSource, request, schema)
    val summary = PlanSummary.of(planned.tasks.head)
    val tasks = planned.tasks.tail
    PlannedRead(summary, tasks, () => planned.pythonScan(dataSource, name, schema, options, tasks))
  }

  /** Returns the aggregates of a batch that commits know, by name: None is null.
    *
    * @param names
    *   those that the query needs
    */
  def aggregates(bounds: RowBounds, names: Seq[String]): Map[String, Option[Long]] = {
    val json = PythonPlanner.json("bounds" -> bounds.toJava, "aggregates" -> names.asJava)
    val planned = KlogPythonBridge.planBatch(dataSource, PickledRequest.of(pickled, json), tableSchema)
    PlanSummary.of(planned.tasks.head).aggregates
  }

  /** Returns Python's scan of a stream that Python reads.
    *
    * @param schema
    *   the columns to read
    */
  def pythonStreamScan(schema: StructType): Scan =
    KlogPythonBridge.streamScan(dataSource, name, pickled, schema, options)

  /** Returns Python's scan of a stream, whose micro-batches are planned for the shim.
    *
    * @param schema
    *   the columns to read
    */
  def streamScan(schema: StructType): Scan = {
    val request = PickledRequest.of(pickled, PythonPlanner.json())
    KlogPythonBridge.streamScan(dataSource, name, request, schema, options)
  }
}

object PythonPlanner {
  private val mapper = new ObjectMapper

  private[spark] def json(fields: (String, AnyRef)*): String = {
    val values = new java.util.LinkedHashMap[String, AnyRef]
    fields.foreach { case (name, value) => values.put(name, value) }
    mapper.writeValueAsString(values)
  }
}

/** A batch that Python has planned.
  *
  * @param tasks
  *   its tasks, pickled: lists of slices
  * @param pythonScan
  *   makes Python's scan of the same tasks
  */
final case class PlannedRead(summary: PlanSummary, tasks: Seq[Array[Byte]], pythonScan: () => Scan)

object PlannedRead {

  /** Returns the slices of a pickled task, as `Slice.expandTask` takes them. */
  def task(pickled: Array[Byte]): JavaList[_] = PickledRequest.partitionValue(pickled) match {
    case slices: JavaList[_] => slices
    case _ => java.util.List.of() // Spark makes a partition of None if a plan has no task.
  }
}
