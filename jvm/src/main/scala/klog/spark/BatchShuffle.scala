package klog.spark

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.rdd.{KlogRows, RDD, ShuffledRDD}
import org.apache.spark.serializer.JavaSerializer
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

import scala.collection.mutable

import klog.staging._

/** A batch of another task, where Spark has the rows of a write. */
final class BatchRow(val batch: PlacedBatch) extends GenericInternalRow(0)

/** Follows a batch once for each of its records but the first, as Spark counts the rows of a write. */
final class RowOfBatch extends GenericInternalRow(0)

/** Shuffles the batches of a write, so that one task gets all of a partition.
  *
  * The rule: the task that has the rows cuts them into batches, which are large and few, and the task of
  * the partition gets them in the order of tasks. So the log has the same rows in the same order as without a
  * shuffle. Rows stay in their tasks where a shuffle would not leave fewer files.
  */
object BatchShuffle {

  /** Returns the rows of a write, or its batches in the tasks of their partitions. */
  def of(rows: RDD[InternalRow], tasks: PlannedTasks): RDD[InternalRow] = {
    val partitions = tasks.plan.topic.map(tasks.plan.topicPlan).fold(Int.MaxValue)(_.partitions)
    val count = rows.getNumPartitions
    if (count <= (if (tasks.areRowsSpread) 1 else partitions)) rows
    else {
      val work = tasks.work
      def batchesOf(task: Int, rows: Iterator[InternalRow]) = new TaskBatches(work, task, rows)
      val batches = KlogRows.map(rows, batchesOf, tasks.isOrderSensitive)
      val targets = new TaskOfPartition(math.min(count, partitions))
      new ShuffledRDD[BatchPlace, EncodedBatch, EncodedBatch](batches, targets)
        .setKeyOrdering(BatchPlace.ordering)
        .setSerializer(new JavaSerializer(rows.sparkContext.getConf))
        .mapPartitions(_.flatMap { case (place, batch) => rowsOf(place, batch) })
    }
  }

  /** Throws if this Spark lacks something that is used here. */
  def probe(): Unit = {
    classOf[ShuffledRDD[_, _, _]].getMethods
    KlogRows.probe()
  }

  private def rowsOf(place: BatchPlace, batch: EncodedBatch): Iterator[InternalRow] =
    Iterator.single(new BatchRow(PlacedBatch(place, batch))) ++ Iterator.fill(batch.recordCount - 1)(Counted)

  private val Counted = new RowOfBatch
}

/** The task that gets a batch: one for each partition, or for some. */
private final class TaskOfPartition(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key match {
    case place: BatchPlace => place.partition % numPartitions
  }
}

/** The batches of one task's rows. */
private final class TaskBatches(work: TaskWork, task: Int, from: Iterator[InternalRow])
    extends Iterator[(BatchPlace, EncodedBatch)] {
  private val columns = new RowColumns(work.schema)
  private val row = new RowToWrite
  private val cut = mutable.Queue.empty[(BatchPlace, EncodedBatch)]
  private var cutCount = 0
  private val rows = work.classified {
    val (plan, writer) = (work.plan, work.writer)
    val attempt = TaskContext.get().taskAttemptId()
    val rowTask = TaskAttempt.of(plan, writer, task, attempt, System.currentTimeMillis)
    new TaskRows(plan, writer, rowTask, isPackedLater = true, addBatch)
  }
  TaskContext.get().addTaskCompletionListener[Unit](_ => rows.close())

  override def hasNext: Boolean = {
    if (cut.isEmpty) work.classified(pull())
    cut.nonEmpty
  }

  override def next(): (BatchPlace, EncodedBatch) = {
    val _ = hasNext
    cut.dequeue()
  }

  private def pull(): Unit = {
    while (cut.isEmpty && from.hasNext) {
      columns.read(from.next(), row)
      rows.add(row)
      if (rows.memoryBytes > work.plan.bufferBytes) rows.flush()
    }
    if (cut.isEmpty) rows.flush()
  }

  private def addBatch(topic: String, partition: Int, batch: EncodedBatch): Unit = {
    cut.enqueue((BatchPlace(topic, partition, task, cutCount), batch))
    cutCount += 1
  }
}
