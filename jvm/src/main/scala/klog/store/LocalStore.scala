package klog.store

import java.io.FileNotFoundException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, NoSuchFileException, Path, Paths, StandardCopyOption, StandardOpenOption}
import java.nio.file.attribute.FileTime
import java.util.concurrent.TimeUnit

/** Local disk.
  *
  * The rule (docs/slice.md, Identity): device and inode say which file it is, size and modification time
  * whether its bytes are the same. Java cannot ask an open file for them, so the name is asked before and
  * after it is opened: if the answers are equal, they are those of the open file.
  */
object LocalStore extends WritableSegmentStore {
  private val MaxTries = 8

  override def open(path: String, sizeBytes: Long): SegmentFile = {
    val file = Paths.get(path)
    var tries = 0
    while (tries < MaxTries) {
      val before = status(file)
      val channel = openChannel(file)
      try {
        if (status(file).identity == before.identity) return new LocalFile(channel, before)
      } catch {
        case exc: Throwable =>
          channel.close()
          throw exc
      }
      channel.close()
      tries += 1
    }
    throw new FileNotFoundException(s"$path is replaced again and again")
  }

  override def create(path: String): NewFile = {
    val file = Paths.get(path)
    DurableDirectories.make(file.getParent)
    new NewLocalFile(file)
  }

  private final case class Status(identity: String, stamp: String, sizeBytes: Long)

  private def openChannel(file: Path): FileChannel =
    try FileChannel.open(file, StandardOpenOption.READ)
    catch { case _: NoSuchFileException => throw new FileNotFoundException(file.toString) }

  private def status(file: Path): Status =
    try {
      val attributes = Files.readAttributes(file, "unix:dev,ino,size,lastModifiedTime,isRegularFile")
      if (attributes.get("isRegularFile") != true)
        throw new FileNotFoundException(s"$file is not a regular file")
      val size = attributes.get("size").asInstanceOf[Long]
      val modified = attributes.get("lastModifiedTime").asInstanceOf[FileTime].to(TimeUnit.NANOSECONDS)
      val device = attributes.get("dev").asInstanceOf[Long].toHexString
      val inode = attributes.get("ino").asInstanceOf[Long].toHexString
      Status(s"$device-$inode", s"$size-$modified", size)
    } catch { case _: NoSuchFileException => throw new FileNotFoundException(file.toString) }

  private final class LocalFile(channel: FileChannel, status: Status) extends SegmentFile {
    override def sizeBytes: Long = status.sizeBytes
    override def identity: String = status.identity
    override def stamp: String = status.stamp
    var requests: Long = 0

    override def read(position: Long, into: Array[Byte], at: Int, size: Int): Int = {
      requests += 1
      val buffer = ByteBuffer.wrap(into, at, size)
      while (buffer.hasRemaining && channel.read(buffer, position + buffer.position - at) >= 0) {}
      buffer.position - at
    }

    override def close(): Unit = channel.close()
  }

  /** A temporary file in the same directory, which is synced and takes the name. After a loss of power each
    * directory is in its parent.
    */
  private final class NewLocalFile(file: Path) extends NewFile {
    private val temporary = file.resolveSibling(TemporaryNames.of(file.getFileName.toString))
    private val channel =
      FileChannel.open(temporary, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)

    override def write(bytes: Array[Byte]): Unit = {
      val buffer = ByteBuffer.wrap(bytes)
      while (buffer.hasRemaining) channel.write(buffer)
    }

    override def complete(): Unit = {
      channel.force(true)
      channel.close()
      Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE)
      DurableDirectories.sync(file.getParent)
    }

    override def close(): Unit =
      try channel.close()
      finally { val _ = Files.deleteIfExists(temporary) }
  }
}
