package klog.spark

import java.io.IOException

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.sql.types.StructType

import klog.staging.{StagingError, WritePlan, Writer}
import klog.store.StoreErrors

/** What the tasks of a write know, as it travels to executors.
  *
  * @param planJson
  *   the plan of the write
  * @param schema
  *   of its rows
  * @param isStream
  *   whether it is a micro-batch
  * @param plannedMs
  *   when it was planned: the time of staging of rows that are shuffled, so that a task which runs again
  *   rejects the same rows
  */
final class TaskWork(
    planJson: String,
    val schema: StructType,
    val stores: TaskStores,
    isStream: Boolean,
    val plannedMs: Long
) extends Serializable {

  /** The plan, read in the process that asks. */
  @transient lazy val plan: WritePlan = WritePlan.of(planJson)

  /** Returns who writes, as the local properties of the task say it. */
  def writer: Option[Writer] = TaskWriter.of(plan, TaskContext.get(), isStream)

  /** Does a part of the work; its errors become those that Python's tasks raise. */
  def classified[T](part: => T): T =
    try part
    catch { case NonFatal(exc) => throw translate(exc) }

  /** Returns an error as Python's tasks raise it. */
  def translate(error: Throwable): Throwable = error match {
    case exc: StagingError => stores.errorOf(exc.pythonClass, exc.sentence, exc)
    case exc: IOException =>
      val reason = StagingError.reason(exc)
      stores.errorOf(
        StoreErrors.pythonClass(exc),
        s"a task cannot write: $reason. Check the root and its options",
        exc
      )
    case exc if stores.showsSecret(exc) => stores.errorOf("KlogError", s"a task cannot write: $exc", exc)
    case exc => exc
  }
}

/** Who writes, as the local properties of a task say it (`klog.connector.sink.spark_writers`). */
private object TaskWriter {
  private val Query = "sql.streaming.queryId"
  private val Batch = "streaming.sql.batchId"
  private val Run = "spark.jobGroup.id"
  private val Uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

  def of(plan: WritePlan, context: TaskContext, isStream: Boolean): Option[Writer] = {
    def property(name: String): String = Option(context.getLocalProperty(name)).getOrElse("")
    val query = property(Query)
    val run = if (query.nonEmpty && property(Run).matches(Uuid)) property(Run) else plan.writeId
    if (!isStream)
      for (name <- plan.transactionalId; version <- plan.transactionVersion)
        yield Writer(name, version, query, run)
    else if (query.isEmpty || property(Batch).isEmpty)
      throw StagingError.failed(
        s"Spark does not say whose rows these are ($Query is '$query', $Batch is '${property(Batch)}'): without " +
          "it a stream cannot be written exactly once. Write it from foreachBatch, with transactionalId and " +
          "transactionVersion"
      )
    else Some(Writer(plan.transactionalId.getOrElse(query), property(Batch).toLong, query, run))
  }
}
