package klog.store

import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Path, StandardOpenOption}

/** Directories on local disk that survive a loss of power.
  *
  * The rule: a name is durable when its directory is synced. So each directory that is made is synced into
  * its parent, also one that another process makes at the same moment.
  */
object DurableDirectories {

  /** Makes the names in a directory durable. */
  def sync(directory: Path): Unit = {
    val channel = FileChannel.open(directory, StandardOpenOption.READ)
    try channel.force(true)
    finally channel.close()
  }

  /** Makes a directory and those above it, if it is missing. */
  def make(directory: Path): Unit =
    if (!Files.isDirectory(directory)) {
      try makeOne(directory)
      catch {
        case _: NoSuchFileException if directory.getParent != null =>
          make(directory.getParent)
          makeOne(directory)
      }
    }

  private def makeOne(directory: Path): Unit = {
    try Files.createDirectory(directory)
    catch { case _: FileAlreadyExistsException if Files.isDirectory(directory) => }
    sync(directory.getParent)
  }
}
