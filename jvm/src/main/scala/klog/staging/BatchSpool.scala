package klog.staging

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths, StandardOpenOption}

import scala.collection.mutable

/** A batch in the spool: its bytes, or its position in the file. */
final class SpooledBatch private[staging] (private[staging] var data: Array[Byte], val sizeBytes: Int) {
  private[staging] var position: Long = 0
}

/** Encoded batches that wait, in memory or on disk, until their segment is closed or their task has ended.
  *
  * The rule: rows arrive for all partitions in turn, and a file that is open on a store takes memory. Batches that do
  * not fit into memory go to one temporary file on the local disk, which has no name and disappears with
  * the process. Its space is used again when all batches in it have been taken.
  *
  * @param folder
  *   the directory of that file
  * @param setting
  *   what names another one
  */
final class BatchSpool(folder: Path, setting: String) extends AutoCloseable {
  private val inMemory = mutable.LinkedHashSet.empty[SpooledBatch]
  private var file: Option[FileChannel] = None
  private var fileEnd = 0L
  private var liveFileBytes = 0L

  /** The size of the batches that are in memory. */
  var memoryBytes: Long = 0

  def add(data: Array[Byte]): SpooledBatch = {
    val batch = new SpooledBatch(data, data.length)
    inMemory += batch
    memoryBytes += data.length
    batch
  }

  /** Moves all batches in memory to the file. */
  def spill(): Unit = translated {
    val channel = file.getOrElse(open())
    for (batch <- inMemory) {
      write(channel, batch.data)
      batch.position = fileEnd
      batch.data = null
      fileEnd += batch.sizeBytes
      liveFileBytes += batch.sizeBytes
    }
    inMemory.clear()
    memoryBytes = 0
  }

  /** Returns the bytes of batches. A batch leaves the spool when it is read. */
  def take(batches: Seq[SpooledBatch]): Iterator[Array[Byte]] = batches.iterator.map { batch =>
    if (batch.data == null) readBack(batch)
    else {
      val data = batch.data
      batch.data = null
      inMemory -= batch
      memoryBytes -= batch.sizeBytes
      data
    }
  }

  override def close(): Unit = file.foreach(_.close())

  private def open(): FileChannel = {
    val path = Files.createTempFile(folder, "klog-", ".batches")
    try {
      val channel = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)
      file = Some(channel)
      channel
    } finally Files.delete(path)
  }

  private def write(channel: FileChannel, data: Array[Byte]): Unit = {
    val buffer = ByteBuffer.wrap(data)
    while (buffer.hasRemaining) channel.write(buffer, fileEnd + buffer.position)
  }

  private def readBack(batch: SpooledBatch): Array[Byte] = translated {
    val buffer = ByteBuffer.allocate(batch.sizeBytes)
    while (buffer.hasRemaining) {
      if (file.get.read(buffer, batch.position + buffer.position) < 0) throw new IOException("it ends early")
    }
    liveFileBytes -= batch.sizeBytes
    if (liveFileBytes == 0) {
      file.get.truncate(0)
      fileEnd = 0
    }
    buffer.array
  }

  private def translated[T](work: => T): T =
    try work
    catch {
      case exc: IOException =>
        throw StagingError.failed(
          s"batches cannot wait in a temporary file in $folder: ${StagingError.reason(exc)}. Free some space " +
            s"there, name another directory with $setting, or raise buffer.memory",
          exc
        )
    }
}

object BatchSpool {

  /** Returns a spool with its file where Java's temporary files are. */
  def ofJava(): BatchSpool =
    new BatchSpool(Paths.get(System.getProperty("java.io.tmpdir")), "-Djava.io.tmpdir")
}
