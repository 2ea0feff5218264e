package klog.spark

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.rdd.{KlogRows, OrderedShuffle, RDD}
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
  def of(rows: RDD[InternalRow], tasks: PlannedTasks, isOrderSensitive: Boolean): RDD[InternalRow] =
    tasks.plan.topic.map(tasks.plan.topicPlan) match {
      case Some(topic) if rows.getNumPartitions > (if (tasks.areRowsSpread) 1 else topic.partitions) =>
        shuffled(rows, tasks, topic, isOrderSensitive)
      case _ => rows
    }

  private def shuffled(
      rows: RDD[InternalRow],
      tasks: PlannedTasks,
      topic: TopicPlan,
      isOrderSensitive: Boolean
  ): RDD[InternalRow] = {
    val work = tasks.work
    def batchesOf(task: Int, rows: Iterator[InternalRow]) = new TaskBatches(work, task, rows)
    val batches = KlogRows.map(rows, batchesOf, isOrderSensitive || tasks.isOrderSensitive)
    val topics = topic +: tasks.plan.deadLetterTopic.flatMap(tasks.plan.topics.get).toSeq
    val taskCount = math.min(rows.getNumPartitions, topic.partitions)
    val partitions = new PartitionsOfTopics(topics)
    val memoryBytes = tasks.plan.bufferBytes / 2
    def translate(exc: Throwable) = exc match {
      case _: StagingError => work.translate(exc)
      case _ => exc
    }
    val ordered =
      new OrderedShuffle(batches, partitions, new BatchSerializer, taskCount, memoryBytes, translate)
    tasks.onEnd(() => KlogRows.deleteShuffle(ordered))
    ordered.mapPartitions(_.flatMap { case (key, batch) => rowsOf(key, batch) })
  }

  /** Throws if this Spark lacks something that is used here. */
  def probe(): Unit = {
    OrderedShuffle.probe()
    KlogRows.probe()
  }

  private def rowsOf(key: BatchKey, batch: EncodedBatch): Iterator[InternalRow] =
    Iterator.single(new BatchRow(KeyedBatch(key, batch))) ++ Iterator.fill(batch.recordCount - 1)(extraRow)

  private val extraRow = new ExtraRow
}

/** Numbers the partitions of some topics: those of the first one, then those of the next. */
private final class PartitionsOfTopics(topics: Seq[TopicPlan]) extends Partitioner {
  private val firstNumbers = topics.map(_.topic).zip(topics.map(_.partitions).scanLeft(0)(_ + _)).toMap

  override val numPartitions: Int = topics.map(_.partitions).sum
  override def getPartition(key: Any): Int = {
    val batch = key.asInstanceOf[BatchKey]
    firstNumbers(batch.topic) + batch.partition
  }
}

/** The batches of one task's rows. Open ones may take half of `buffer.memory`, closed ones the rest. */
private final class TaskBatches(work: TaskWork, task: Int, from: Iterator[InternalRow])
    extends Iterator[(BatchKey, EncodedBatch)] {
  private val columns = new RowColumns(work.schema)
  private val row = new RowToWrite
  private val cut = mutable.Queue.empty[(BatchKey, EncodedBatch)]
  private val cutCounts = mutable.Map.empty[(String, Int), Int].withDefaultValue(0)
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
      if (rows.memoryBytes > work.plan.bufferBytes / 2) work.classified(rows.flush())
    }
    if (cut.isEmpty) work.classified(rows.flush())
  }

  private def addBatch(topic: String, partition: Int, batch: EncodedBatch): Unit = {
    val number = cutCounts((topic, partition))
    cutCounts((topic, partition)) = number + 1
    cut.enqueue((BatchKey(topic, partition, task, number), batch))
  }
}
