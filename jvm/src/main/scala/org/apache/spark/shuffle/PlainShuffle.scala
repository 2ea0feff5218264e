package org.apache.spark.shuffle

import java.io.{BufferedInputStream, ByteArrayOutputStream, File, InputStream, OutputStream}
import java.lang.invoke.{MethodHandles, MethodType}

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.reflect.ClassTag
import scala.util.control.NonFatal

import org.apache.spark._
import org.apache.spark.executor.{TaskMetrics, TempShuffleReadMetrics}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.serializer.{JavaSerializer, Serializer, SerializerManager}
import org.apache.spark.shuffle.api.ShufflePartitionWriter
import org.apache.spark.shuffle.api.metadata.MapOutputCommitMessage
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleMapOutputWriter
import org.apache.spark.storage.{
  BlockId,
  BlockManager,
  BlockManagerId,
  DiskBlockManager,
  TimeTrackingOutputStream
}

import klog.staging.{BatchSpool, CheckedFrames, SpooledBatch}

/** A shuffle whose bytes lie on disk as its serializer made them, in frames with a CRC.
  *
  * The rule: large values that are compressed already, or that nobody wants compressed, are not compressed
  * again. Spark compresses all shuffles or none, and that takes longer than the rest of one. The files, their
  * index and the fetches are Spark's own: executors serve, move and delete the blocks as those of other
  * shuffles, and Spark runs a task again if its bytes are lost or damaged.
  *
  * A shuffle manager that is not Spark's and a plug-in for shuffle storage have their own files, and
  * encrypted files need Spark's writer. With any of these all is Spark's.
  *
  * The classes are not public, so this file lies in their package.
  */
object PlainShuffle {

  /** Returns the dependency on a shuffle of an RDD's pairs.
    *
    * @param serializer
    *   the bytes of a pair must mean the same wherever in a stream they lie
    * @param memoryBytes
    *   how much of what a task writes it keeps in memory, until it has all
    * @param translate
    *   returns an error of a task as users see it
    */
  def of[K: ClassTag, V: ClassTag](
      rows: RDD[(K, V)],
      partitioner: Partitioner,
      serializer: Serializer,
      memoryBytes: Long,
      translate: Throwable => Throwable
  ): ShuffleDependency[K, V, V] = {
    // Spark makes a writer of another kind for them, which takes memory that is freed at its end.
    require(
      !serializer.supportsRelocationOfSerializedObjects,
      "the serializer says that Spark may sort its bytes"
    )
    val writer = new PlainWriter(memoryBytes, translate)
    val shuffle = new ShuffleDependency[K, V, V](rows, partitioner, serializer, None, None, false, writer)
    // Blocks that Spark pushes to other hosts have lost the order of the tasks.
    shuffle.setShuffleMergeAllowed(false)
    shuffle
  }

  /** Returns what some tasks wrote for a partition: those from `startMapIndex` on, before `endMapIndex`. */
  def read[K, V](
      shuffle: ShuffleDependency[K, V, V],
      startMapIndex: Int,
      endMapIndex: Int,
      reduceId: Int,
      context: TaskContext
  ): Iterator[Product2[K, V]] = {
    val (handle, env) = (shuffle.shuffleHandle, SparkEnv.get)
    val metrics = context.taskMetrics().createTempShuffleReadMetrics()
    val reader = files match {
      case None =>
        env.shuffleManager
          .getReader[K, V](handle, startMapIndex, endMapIndex, reduceId, reduceId + 1, context, metrics)
      case Some(_) =>
        val tracker = env.mapOutputTracker
        new BlockStoreShuffleReader[K, V](
          handle.asInstanceOf[BaseShuffleHandle[K, _, V]],
          tracker
            .getMapSizesByExecutorId(shuffle.shuffleId, startMapIndex, endMapIndex, reduceId, reduceId + 1),
          context,
          metrics,
          frameReader,
          env.blockManager,
          tracker,
          false
        )
    }
    reader.read()
  }

  /** Spark's files of shuffles, if frames can lie in them. */
  private[shuffle] def files: Option[IndexShuffleBlockResolver] = {
    val env = SparkEnv.get
    val isOnLocalDisk = !env.conf.contains("spark.shuffle.sort.io.plugin.class")
    env.shuffleManager match {
      case manager: SortShuffleManager
          if manager.getClass == classOf[SortShuffleManager] && isOnLocalDisk &&
            !env.serializerManager.encryptionEnabled =>
        Some(manager.shuffleBlockResolver)
      case _ => None
    }
  }

  /** Unpacks the blocks that are fetched. If that fails, Spark runs the task again that wrote the block. */
  private lazy val frameReader: SerializerManager = {
    val conf = new SparkConf(loadDefaults = false)
    new SerializerManager(new JavaSerializer(conf), conf) {
      override def wrapStream(block: BlockId, stream: InputStream): InputStream =
        new CheckedFrames(new BufferedInputStream(stream))
    }
  }

  /** Throws if this Spark lacks something that is used here. */
  def probe(): Unit = {
    PlainShuffleProbe.writer()
    PlainShuffleProbe.reader()
  }
}

/** Gathers the pairs of one task by partition, in memory and what is more in a temporary file. */
private final class PlainWriter(memoryBytes: Long, translate: Throwable => Throwable)
    extends ShuffleWriteProcessor {
  override def write(
      pairs: Iterator[_],
      shuffle: ShuffleDependency[_, _, _],
      mapId: Long,
      mapIndex: Int,
      context: TaskContext
  ): MapStatus = PlainShuffle.files match {
    case None => super.write(pairs, shuffle, mapId, mapIndex, context)
    case Some(files) =>
      val env = SparkEnv.get
      val metrics = createMetricsReporter(context)
      // Spark deletes the files of the tasks whose writers it has made.
      env.shuffleManager.getWriter(shuffle.shuffleHandle, mapId, context, metrics)
      val partitions = shuffle.partitioner.numPartitions
      val output = new LocalDiskShuffleMapOutputWriter(shuffle.shuffleId, mapId, partitions, files, env.conf)
      val folders = env.blockManager.diskBlockManager.localDirs
      val folder = folders((mapIndex + context.attemptNumber()) % folders.length)
      val spool = new BatchSpool(folder.toPath, "spark.local.dir or the local directories of the cluster")
      try {
        for ((partition, frames) <- gather(pairs, shuffle, spool, metrics)) {
          val stream =
            new TimeTrackingOutputStream(metrics, output.getPartitionWriter(partition).openStream())
          try {
            spool.take(frames.toSeq).foreach(stream.write)
            stream.write(CheckedFrames.endMark(frames.length))
          } finally stream.close()
        }
        val lengths = output.commitAllPartitions(Array.emptyLongArray).getPartitionLengths
        metrics.incBytesWritten(lengths.sum)
        MapStatus(env.blockManager.shuffleServerId, lengths, mapId, 0)
      } catch {
        case exc: Throwable =>
          abort(output, exc)
          throw translate(exc)
      } finally spool.close()
  }

  /** Deletes the file of the task. If it cannot be closed, as on a full disk, the second time does it. */
  private def abort(output: LocalDiskShuffleMapOutputWriter, cause: Throwable): Unit =
    for (_ <- 1 to 2)
      try output.abort(cause)
      catch { case NonFatal(exc) => cause.addSuppressed(exc) }

  /** Returns the frames of each partition, both in order. */
  private def gather(
      pairs: Iterator[_],
      shuffle: ShuffleDependency[_, _, _],
      spool: BatchSpool,
      metrics: ShuffleWriteMetricsReporter
  ): mutable.TreeMap[Int, ArrayBuffer[SpooledBatch]] = {
    val gathered = mutable.TreeMap.empty[Int, ArrayBuffer[SpooledBatch]]
    val bytes = new ByteArrayOutputStream
    val values = shuffle.serializer.newInstance().serializeStream(bytes)
    for (pair <- pairs) {
      val (key, value) = pair.asInstanceOf[(Any, Any)]
      CheckedFrames.begin(bytes)
      values.writeKey(key).writeValue(value).flush()
      val partition = shuffle.partitioner.getPartition(key)
      gathered.getOrElseUpdate(partition, ArrayBuffer.empty) += spool.add(CheckedFrames.end(bytes))
      metrics.incRecordsWritten(1)
      if (spool.memoryBytes > memoryBytes) spool.spill()
    }
    values.close()
    gathered
  }
}

/** What `PlainShuffle` uses of Spark. */
private object PlainShuffleProbe {
  private val (number, long, flag, none) =
    (Integer.TYPE, java.lang.Long.TYPE, java.lang.Boolean.TYPE, java.lang.Void.TYPE)

  // `getMethod` would load the classes of all methods of SparkEnv, which pip's Spark 4.3 does not have.
  private def has(owner: Class[_], name: String, result: Class[_], parameters: Class[_]*): Unit = {
    val _ = MethodHandles.lookup.findVirtual(owner, name, MethodType.methodType(result, parameters.toArray))
  }

  private def isMadeOf(owner: Class[_], parameters: Class[_]*): Unit = {
    val _ = MethodHandles.lookup.findConstructor(owner, MethodType.methodType(none, parameters.toArray))
  }

  def writer(): Unit = {
    val (context, shuffle) = (classOf[TaskContext], classOf[ShuffleDependency[_, _, _]])
    val (rows, option, tag) = (classOf[Iterator[_]], classOf[Option[_]], classOf[ClassTag[_]])
    val (metrics, processor) = (classOf[ShuffleWriteMetricsReporter], classOf[ShuffleWriteProcessor])
    val (blocks, files) = (classOf[BlockManager], classOf[IndexShuffleBlockResolver])
    val output = classOf[LocalDiskShuffleMapOutputWriter]
    has(classOf[SparkEnv], "shuffleManager", classOf[ShuffleManager])
    has(classOf[SparkEnv], "blockManager", blocks)
    has(classOf[SortShuffleManager], "shuffleBlockResolver", files)
    val dependency =
      Seq(classOf[RDD[_]], classOf[Partitioner], classOf[Serializer], option, option, flag, processor)
    isMadeOf(shuffle, dependency ++ Seq(tag, tag, tag): _*)
    has(shuffle, "setShuffleMergeAllowed", none, flag)
    has(processor, "write", classOf[MapStatus], rows, shuffle, long, number, context)
    has(processor, "createMetricsReporter", metrics, context)
    val writer = classOf[ShuffleWriter[_, _]]
    has(classOf[ShuffleManager], "getWriter", writer, classOf[ShuffleHandle], long, context, metrics)
    isMadeOf(output, number, long, number, files, classOf[SparkConf])
    has(output, "getPartitionWriter", classOf[ShufflePartitionWriter], number)
    has(classOf[ShufflePartitionWriter], "openStream", classOf[OutputStream])
    has(output, "commitAllPartitions", classOf[MapOutputCommitMessage], classOf[Array[Long]])
    has(classOf[MapOutputCommitMessage], "getPartitionLengths", classOf[Array[Long]])
    has(output, "abort", none, classOf[Throwable])
    isMadeOf(classOf[TimeTrackingOutputStream], metrics, classOf[OutputStream])
    has(metrics, "incBytesWritten", none, long)
    has(metrics, "incRecordsWritten", none, long)
    has(blocks, "diskBlockManager", classOf[DiskBlockManager])
    has(classOf[DiskBlockManager], "localDirs", classOf[Array[File]])
    has(blocks, "shuffleServerId", classOf[BlockManagerId])
    val status = Seq(classOf[BlockManagerId], classOf[Array[Long]], long, long)
    has(MapStatus.getClass, "apply", classOf[MapStatus], status: _*)
  }

  def reader(): Unit = {
    val (tracker, serializers) = (classOf[MapOutputTracker], classOf[SerializerManager])
    val (context, metrics) = (classOf[TaskContext], classOf[ShuffleReadMetricsReporter])
    has(classOf[SparkEnv], "mapOutputTracker", tracker)
    has(classOf[SparkEnv], "serializerManager", serializers)
    has(serializers, "encryptionEnabled", flag)
    isMadeOf(serializers, classOf[Serializer], classOf[SparkConf])
    has(serializers, "wrapStream", classOf[InputStream], classOf[BlockId], classOf[InputStream])
    has(classOf[TaskMetrics], "createTempShuffleReadMetrics", classOf[TempShuffleReadMetrics])
    val range = Seq(number, number, number, number)
    val parameters = classOf[ShuffleHandle] +: range :+ context :+ metrics
    has(classOf[ShuffleManager], "getReader", classOf[ShuffleReader[_, _]], parameters: _*)
    has(tracker, "getMapSizesByExecutorId", classOf[Iterator[_]], number +: range: _*)
    val read =
      Seq(classOf[BaseShuffleHandle[_, _, _]], classOf[Iterator[_]], context, metrics, serializers)
    isMadeOf(classOf[BlockStoreShuffleReader[_, _]], read ++ Seq(classOf[BlockManager], tracker, flag): _*)
    has(classOf[ShuffleReader[_, _]], "read", classOf[Iterator[_]])
  }
}
