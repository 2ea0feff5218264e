package klog.spark

import java.util.Optional

import org.apache.spark.sql.connector.catalog.SupportsWrite
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, SupportsTruncate, Write, WriteBuilder}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Makes a write, which Python plans and commits, and whose tasks the JVM runs if it can.
  *
  * The rule: update mode of a stream is taken as append, as Spark's Kafka sink does. Whether a write may
  * replace what is there, Python says.
  */
final class KlogWriteBuilder(
    python: SupportsWrite,
    info: LogicalWriteInfo,
    options: CaseInsensitiveStringMap,
    sink: SinkState
) extends WriteBuilder
    with SupportsTruncate
    with SupportsStreamingUpdateAsAppend {
  private var isTruncated = false

  override def truncate(): WriteBuilder = {
    isTruncated = true
    this
  }

  override def build(): Write = {
    val reason = Engine.ofWrite(options).pythonWriteReason(WriteRefusal.of(options))
    if (reason.nonEmpty) new PythonKlogWrite(pythonWrite(options), reason, sink.progress)
    else new KlogWrite(pythonWrite(plannedForJvm), info.schema, options, sink)
  }

  private def plannedForJvm: CaseInsensitiveStringMap = {
    val all = new java.util.HashMap[String, String](options.asCaseSensitiveMap)
    all.put(KlogWriteBuilder.PlannedFor, "jvm")
    new CaseInsensitiveStringMap(all)
  }

  private def pythonWrite(options: CaseInsensitiveStringMap): Write = {
    val builder = python.newWriteBuilder(new WriteInfo(info, options))
    (if (isTruncated) builder.asInstanceOf[SupportsTruncate].truncate() else builder).build()
  }
}

object KlogWriteBuilder {

  /** Tells Python that the plan is for the JVM (`klog.connector.sink.jvm_write`). */
  private val PlannedFor = "klog.plannedFor"
}

/** A write with other options. */
private final class WriteInfo(info: LogicalWriteInfo, override val options: CaseInsensitiveStringMap)
    extends LogicalWriteInfo {
  override def queryId(): String = info.queryId
  override def schema(): StructType = info.schema
  override def rowIdSchema(): Optional[StructType] = info.rowIdSchema
  override def metadataSchema(): Optional[StructType] = info.metadataSchema
}
