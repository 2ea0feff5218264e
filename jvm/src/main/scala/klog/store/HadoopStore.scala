package klog.store

import java.io.{FileNotFoundException, InterruptedIOException}
import java.net.{SocketTimeoutException, URI}
import java.nio.channels.ClosedByInterruptException
import java.util.EnumSet
import java.util.concurrent.ExecutionException

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{CreateFlag, FileSystem, FSDataInputStream, FSDataOutputStream, Path}
import org.apache.hadoop.fs.permission.FsPermission

/** A store that Hadoop has a file system for: HDFS, WebHDFS, and S3 if the user's `hadoop-aws` is there.
  *
  * The rule: a slice is read front to back, so a stream that is told so reads ahead, and S3 is asked for
  * the bytes once. Hadoop says when a file was changed, and not which file it is: the planner hands out only
  * files that commits name.
  */
final class HadoopStore(fileSystem: FileSystem) extends WritableSegmentStore {
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

  override def create(path: String): NewFile = {
    val file = hadoopPath(path)
    if (fileSystem.getScheme == "s3a") new NewObject(createOnS3(file))
    else {
      val temporary = new Path(file.getParent, TemporaryNames.of(file.getName))
      val out =
        try createSynced(temporary)
        catch {
          // It may be there: a task that is killed does not hear the answer.
          case exc: Throwable =>
            try Uninterrupted { val _ = fileSystem.delete(temporary, false) }
            catch { case NonFatal(other) => exc.addSuppressed(other) }
            throw exc
        }
      new RenamedFile(fileSystem, out, temporary, file)
    }
  }

  /** Without this option S3 is asked first whether there is a folder of this name. */
  private def createOnS3(file: Path): FSDataOutputStream =
    fileSystem.createFile(file).overwrite(true).opt("fs.s3a.create.performance", true).build()

  /** DataNodes sync each block when it is full, and the last one by `hsync`. */
  private def createSynced(file: Path): FSDataOutputStream = fileSystem.create(
    file,
    FsPermission.getFileDefault,
    EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE, CreateFlag.SYNC_BLOCK),
    BufferBytes,
    fileSystem.getDefaultReplication(file),
    fileSystem.getDefaultBlockSize(file),
    null
  )
}

private final class HadoopFile(stream: FSDataInputStream, override val sizeBytes: Long) extends SegmentFile {
  override def identity: String = ""
  override def stamp: String = ""

  /** Reads that follow each other are one request. */
  var requests: Long = 0

  override def read(position: Long, into: Array[Byte], at: Int, size: Int): Int = {
    val isElsewhere = stream.getPos != position
    if (isElsewhere) stream.seek(position)
    if (isElsewhere || requests == 0) requests += 1
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
  private val BufferBytes = 64 << 10
  private val ReadPolicy = "fs.option.openfile.read.policy"
  private val Length = "fs.option.openfile.length"

  /** Schemes of klog's URLs: those of Hadoop. */
  private val Schemes = Map("hdfs" -> "hdfs", "webhdfs" -> "webhdfs", "s3" -> "s3a", "s3a" -> "s3a")

  /** More servers than a job has; of session tokens, which change, only the last ones are in use. */
  private[store] val MaxConnections = 16
  private val connections = new Connections(MaxConnections)

  private val probes = new RootProbes(() => System.nanoTime)

  /** Returns whether Hadoop has a file system for a scheme. */
  def knows(scheme: String, configuration: Configuration): Boolean =
    Schemes.get(scheme).exists { name =>
      try FileSystem.getFileSystemClass(name, configuration) != null
      catch { case _: Exception | _: LinkageError => false }
    }

  /** Returns the store of a root. */
  def of(root: String, client: HadoopClient): WritableSegmentStore = {
    val server = serverOf(root)
    new ConnectedStore(() => connections.take((server, client.id))(connect(server, client)))
  }

  /** Returns why Hadoop cannot read a root, as a file of it shows, or has shown (`RootProbes`). */
  def accessError(root: String, path: String, client: HadoopClient): String =
    probes.accessError(root, client.id)(probe(root, path, client))

  /** Tries to read a file of a root, and returns why it cannot be reached; empty if it can. */
  private[store] def probe(root: String, path: String, client: HadoopClient): String =
    try {
      reach(root, path, client)
      ""
    } catch {
      // An interruption says nothing about the root. A timeout does, and has the same class.
      case exc @ (_: InterruptedIOException | _: ClosedByInterruptException)
          if !exc.isInstanceOf[SocketTimeoutException] =>
        throw exc
      // Jars of Hadoop whose versions differ show as linkage errors.
      case exc @ (NonFatal(_) | _: LinkageError) =>
        val reason = client.settings.withoutSecrets(exc.toString, client.configuration)
        s"Hadoop cannot read $root: ${reason.linesIterator.next()}"
    }

  /** Reads a byte of a file. A connection is kept if it could, because it keeps its configuration. */
  private def reach(root: String, path: String, client: HadoopClient): Unit = {
    val key = (serverOf(root), client.id)
    val isNew = !connections.has(key)
    val lease = connections.take(key)(connect(key._1, client))
    try readByte(lease.fileSystem, path)
    catch {
      case exc: Throwable =>
        if (isNew) lease.drop()
        throw exc
    } finally lease.release()
  }

  /** Reads the first byte of a file, as tasks do: Spark's WebHDFS reads, but cannot tell a file's status. */
  private def readByte(fileSystem: FileSystem, path: String): Unit =
    try {
      val file = new HadoopStore(fileSystem).open(path, 1)
      try {
        val _ = file.read(0, new Array[Byte](1), 0, 1)
      } finally file.close()
    } catch { case _: FileNotFoundException => } // It was looked for. The read says which file is missing.

  private def serverOf(root: String): URI = {
    val uri = hadoopPath(root).toUri
    new URI(uri.getScheme, uri.getAuthority, "/", null, null)
  }

  private def connect(uri: URI, client: HadoopClient): FileSystem = {
    val configured = client.settings.applyTo(client.configuration, uri.getAuthority)
    client.settings.user match {
      case Some(user) => FileSystem.newInstance(uri, configured, user)
      case None => FileSystem.newInstance(uri, configured)
    }
  }

  private def hadoopPath(path: String): Path = {
    val scheme = SegmentStores.scheme(path)
    new Path(Schemes.getOrElse(scheme, scheme) + path.substring(scheme.length))
  }
}
