package klog.store

import java.io.IOException

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStream, Path, StreamCapabilities}

/** An object on S3, which is there when its last byte was sent. */
private final class NewObject(out: FSDataOutputStream) extends NewFile {
  private var isOpen = true

  override def write(bytes: Array[Byte]): Unit = out.write(bytes)

  override def complete(): Unit = {
    out.close()
    isOpen = false
  }

  /** To close the stream would put what was written so far under the name. */
  override def close(): Unit =
    if (isOpen) Uninterrupted {
      isOpen = false
      val _ = out.abort()
    }
}

/** A temporary file on HDFS, synced to the disks of its DataNodes, which takes the name: a client that is
  * killed would leave a torn one.
  */
private final class RenamedFile(
    fileSystem: FileSystem,
    out: FSDataOutputStream,
    temporary: Path,
    file: Path
) extends NewFile {
  private var isOpen = true

  override def write(bytes: Array[Byte]): Unit = out.write(bytes)

  override def complete(): Unit = {
    if (out.hasCapability(StreamCapabilities.HSYNC)) out.hsync()
    out.close()
    if (!fileSystem.rename(temporary, file)) throw new IOException("it cannot get its name")
    isOpen = false
  }

  override def close(): Unit =
    if (isOpen) Uninterrupted {
      isOpen = false
      try out.close()
      finally { val _ = fileSystem.delete(temporary, false) }
    }
}

/** A task that is killed is interrupted, and Hadoop's calls would fail. */
private object Uninterrupted {
  def apply(work: => Unit): Unit = {
    val isInterrupted = Thread.interrupted()
    try work
    finally if (isInterrupted) Thread.currentThread.interrupt()
  }
}
