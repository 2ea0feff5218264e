package klog.store

import java.io.{ByteArrayInputStream, FileNotFoundException, InterruptedIOException, IOException}
import java.net.{SocketTimeoutException, URI}
import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

/** A file system whose files have one byte, or that fails as its configuration says. It counts by bucket.
  *
  * `klog.test.failure` says how: in `initialize` or in `open`, with the message of `klog.test.message`.
  */
final class FailingFileSystem extends FileSystem {
  import FailingFileSystem._

  private var uri: URI = _

  override def initialize(name: URI, configuration: Configuration): Unit = {
    super.initialize(name, configuration)
    uri = name
    count(connections, uri)
    failIf("initialize")
  }

  override def close(): Unit = {
    count(closings, uri)
    super.close()
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    count(openings, uri)
    failIf("open")
    new FSDataInputStream(new OneByte)
  }

  private def failIf(method: String): Unit = {
    val message = getConf.get("fs.klog-test.message", "no")
    getConf.get("fs.klog-test.failure", "").split(' ') match {
      case Array(`method`, "IOException") => throw new IOException(message)
      case Array(`method`, "IllegalStateException") => throw new IllegalStateException(message)
      case Array(`method`, "NoSuchMethodError") => throw new NoSuchMethodError(message)
      case Array(`method`, "FileNotFoundException") => throw new FileNotFoundException(message)
      case Array(`method`, "InterruptedIOException") => throw new InterruptedIOException(message)
      case Array(`method`, "SocketTimeoutException") => throw new SocketTimeoutException(message)
      case _ =>
    }
  }

  override def getUri: URI = uri
  override def getFileStatus(path: Path): FileStatus = refuse()
  override def listStatus(path: Path): Array[FileStatus] = refuse()
  override def mkdirs(path: Path, permission: FsPermission): Boolean = refuse()
  override def delete(path: Path, recursive: Boolean): Boolean = refuse()
  override def rename(from: Path, to: Path): Boolean = refuse()
  override def append(path: Path, bufferSize: Int, progress: Progressable): FSDataOutputStream = refuse()
  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream = refuse()
  override def setWorkingDirectory(path: Path): Unit = refuse()
  override def getWorkingDirectory: Path = new Path(uri)

  private def refuse(): Nothing = throw new UnsupportedOperationException("klog only reads files")
}

object FailingFileSystem {
  private val connections, openings, closings = new ConcurrentHashMap[String, Int]

  /** Returns how often a bucket was connected to, a file of it opened, and a connection closed. */
  def callsOf(bucket: String): (Int, Int, Int) =
    (connections.getOrDefault(bucket, 0), openings.getOrDefault(bucket, 0), closings.getOrDefault(bucket, 0))

  private def count(calls: ConcurrentHashMap[String, Int], uri: URI): Unit = {
    val _ = calls.merge(uri.getAuthority, 1, _ + _)
  }

  private final class OneByte
      extends ByteArrayInputStream(Array[Byte](1))
      with Seekable
      with PositionedReadable {
    override def getPos: Long = pos.toLong
    override def seek(position: Long): Unit = pos = position.toInt
    override def seekToNewSource(position: Long): Boolean = false
    override def read(position: Long, buffer: Array[Byte], offset: Int, length: Int): Int = -1
    override def readFully(position: Long, buffer: Array[Byte], offset: Int, length: Int): Unit = ()
    override def readFully(position: Long, buffer: Array[Byte]): Unit = ()
  }
}
