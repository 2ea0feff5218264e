package klog.spark

import org.apache.spark.{Partitioner, SparkContext, TaskContext}
import org.apache.spark.rdd.{KlogRows, RDD, ShuffledRDD}
import org.apache.spark.serializer.JavaSerializer
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

import scala.collection.mutable

import klog.staging._

/** A batch of another task, where Spark has the rows of a write. */
final class BatchRow(val batch: KeyedBatch) extends GenericInternalRow(0)

/** Stands for one more record of a batch: Spark counts the rows of a write by what its tasks are given. */
final class ExtraRow extends GenericInternalRow(0)

/** Shuffles the batches of a write, so that one task gets all of a partition.
  *
  * The rule: the task that has the rows cuts them into batches, which are large and few, and the task of
  * the partition gets them in the order of tasks. So the log has the same rows in the same order as without a
  * shuffle. Rows stay in their tasks where a shuffle would not leave fewer files.
  */
object BatchShuffle {

  /** Returns the rows of a write, or its batches in the tasks of their partitions. */
  def of(rows: RDD[InternalRow], tasks: PlannedTasks, isOrderSensitive: Boolean): RDD[InternalRow] = {
    val partitions = tasks.plan.topic.map(tasks.plan.topicPlan).fold(Int.MaxValue)(_.partitions)
    val count = rows.getNumPartitions
    if (count <= (if (tasks.areRowsSpread) 1 else partitions)) rows
    else {
      val work = tasks.work
      def batchesOf(task: Int, rows: Iterator[InternalRow]) = new TaskBatches(work, task, rows)
      val batches = KlogRows.map(rows, batchesOf, isOrderSensitive || tasks.isOrderSensitive)
      val targets = new TaskOfPartition(math.min(count, partitions))
      val shuffled = new ShuffledRDD[BatchKey, EncodedBatch, EncodedBatch](batches, targets)
        .setKeyOrdering(BatchKey.ordering)
        .setSerializer(serializer(rows.sparkContext))
      tasks.onEnd(() => KlogRows.deleteShuffle(shuffled))
      shuffled.mapPartitions(_.flatMap { case (key, batch) => rowsOf(key, batch) })
    }
  }

  /** Java's serializer keeps what it has written until a reset: here a key and a batch. */
  private def serializer(context: SparkContext): JavaSerializer =
    new JavaSerializer(context.getConf.set("spark.serializer.objectStreamReset", "2"))

  /** Throws if this Spark lacks something that is used here. */
  def probe(): Unit = {
    classOf[ShuffledRDD[_, _, _]].getMethods
    KlogRows.probe()
  }

  private def rowsOf(key: BatchKey, batch: EncodedBatch): Iterator[InternalRow] =
    Iterator.single(new BatchRow(KeyedBatch(key, batch))) ++ Iterator.fill(batch.recordCount - 1)(extraRow)

  private val extraRow = new ExtraRow
}

/** The task that gets a batch: one for each partition, or for some. */
private final class TaskOfPartition(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key.asInstanceOf[BatchKey].partition % numPartitions
}

/** The batches of one task's rows. */
private final class TaskBatches(work: TaskWork, task: Int, from: Iterator[InternalRow])
    extends Iterator[(BatchKey, EncodedBatch)] {
  private val columns = new RowColumns(work.schema)
  private val row = new RowToWrite
  private val cut = mutable.Queue.empty[(BatchKey, EncodedBatch)]
  private var cutCount = 0
  private val rows = work.classified {
    val (plan, writer) = (work.plan, work.writer)
    val attempt = TaskContext.get().taskAttemptId()
    val rowTask = TaskAttempt.of(plan, writer, task, attempt, work.plannedMs)
    new TaskRows(plan, writer, rowTask, leavesPartial = true, addBatch)
  }
  TaskContext.get().addTaskCompletionListener[Unit](_ => rows.close())

  override def hasNext: Boolean = {
    if (cut.isEmpty) pull()
    cut.nonEmpty
  }

  override def next(): (BatchKey, EncodedBatch) = {
    val _ = hasNext
    cut.dequeue()
  }

  private def pull(): Unit = {
    while (cut.isEmpty && from.hasNext) {
      columns.read(from.next(), row)
      work.classified(rows.add(row))
      if (rows.memoryBytes > work.plan.bufferBytes) work.classified(rows.flush())
    }
    if (cut.isEmpty) work.classified(rows.flush())
  }

  private def addBatch(topic: String, partition: Int, batch: EncodedBatch): Unit = {
    cut.enqueue((BatchKey(topic, partition, task, cutCount), batch))
    cutCount += 1
  }
}
