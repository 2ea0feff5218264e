package klog.store

import java.io.FileNotFoundException
import java.net.URI
import java.util.concurrent.{ConcurrentHashMap, ExecutionException}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, Path}

/** A store that Hadoop has a file system for: HDFS, WebHDFS, and S3 if the user's `hadoop-aws` is there.
  *
  * The rule: a slice is read front to back, so a stream that is told so reads ahead, and S3 is asked for
  * the bytes once. Hadoop says when a file was changed, and not which file it is: the planner hands out only
  * files that commits name.
  */
final class HadoopStore(fileSystem: FileSystem) extends SegmentStore {
  import HadoopStore._

  override def open(path: String, sizeBytes: Long): SegmentFile = {
    val file = hadoopPath(path)
    val builder = fileSystem.openFile(file)
    builder.opt(ReadPolicy, "sequential")
    // A size that is known saves a request of its own; a wrong one shows while the file is read.
    if (sizeBytes >= 0) builder.optLong(Length, sizeBytes)
    val size = if (sizeBytes >= 0) sizeBytes else fileSystem.getFileStatus(file).getLen
    val stream =
      try builder.build().get()
      catch { case exc: ExecutionException => throw exc.getCause }
    new HadoopFile(stream, size)
  }

  /** Reads the first byte of a file, as tasks do: Spark's WebHDFS reads, but cannot tell a file's status. */
  private def readByte(path: String): Unit = {
    val file = open(path, 1)
    try {
      val _ = file.read(0, new Array[Byte](1), 0, 1)
    } finally file.close()
  }
}

private final class HadoopFile(stream: FSDataInputStream, override val sizeBytes: Long) extends SegmentFile {
  override def identity: String = ""
  override def stamp: String = ""

  override def read(position: Long, into: Array[Byte], at: Int, size: Int): Int = {
    if (stream.getPos != position) stream.seek(position)
    var total = 0
    var isOpen = true
    while (isOpen && total < size) {
      val read = stream.read(into, at + total, size - total)
      if (read < 0) isOpen = false else total += read
    }
    total
  }

  override def close(): Unit = stream.close()
}

object HadoopStore {
  private val ReadPolicy = "fs.option.openfile.read.policy"
  private val Length = "fs.option.openfile.length"

  /** Schemes of klog's URLs: those of Hadoop. */
  private val Schemes = Map("hdfs" -> "hdfs", "webhdfs" -> "webhdfs", "s3" -> "s3a", "s3a" -> "s3a")

  /** File systems by URL and settings. They stay open, as Hadoop's own do: tasks come again. */
  private val open = new ConcurrentHashMap[(URI, StorageSettings), FileSystem]

  /** Roots, by settings, that this process has reached. */
  private val reached = ConcurrentHashMap.newKeySet[(String, StorageSettings)]()

  /** Returns whether Hadoop has a file system for a scheme. */
  def knows(scheme: String, configuration: Configuration): Boolean =
    Schemes.get(scheme).exists { name =>
      try FileSystem.getFileSystemClass(name, configuration) != null
      catch { case _: Exception | _: LinkageError => false }
    }

  /** Returns the store of a root.
    *
    * @param settings
    *   the options of the read, which win over the configuration
    */
  def of(root: String, configuration: Configuration, settings: StorageSettings): HadoopStore = {
    val path = hadoopPath(root)
    val uri = new URI(path.toUri.getScheme, path.toUri.getAuthority, "/", null, null)
    new HadoopStore(open.computeIfAbsent((uri, settings), _ => connect(uri, configuration, settings)))
  }

  /** Returns why a file of a root cannot be reached; empty if it can, or if a file of this root could be. */
  def accessError(
      root: String,
      path: String,
      configuration: Configuration,
      settings: StorageSettings
  ): String =
    if (reached.contains((root, settings))) ""
    else
      try {
        of(root, configuration, settings).readByte(path)
        reached.add((root, settings))
        ""
      } catch {
        case _: FileNotFoundException => "" // The read says which file is missing.
        case NonFatal(exc) => s"Hadoop cannot read $root: ${exc.toString.linesIterator.next()}"
      }

  private def connect(uri: URI, configuration: Configuration, settings: StorageSettings): FileSystem = {
    val configured = settings.applyTo(configuration)
    settings.user match {
      case Some(user) => FileSystem.newInstance(uri, configured, user)
      case None => FileSystem.newInstance(uri, configured)
    }
  }

  private def hadoopPath(path: String): Path = {
    val scheme = SegmentStores.scheme(path)
    new Path(Schemes.getOrElse(scheme, scheme) + path.substring(scheme.length))
  }
}
