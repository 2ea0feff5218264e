package klog.store

import java.io.{ByteArrayOutputStream, IOException}
import java.net.URI
import java.nio.file.{Files, Path => LocalPath}
import java.util.EnumSet

import scala.jdk.CollectionConverters._
import scala.util.Using

import munit.FunSuite
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

/** A new file of each store has its name when it is complete, and leaves nothing otherwise. */
class NewFileSuite extends FunSuite {
  private val folder = FunFixture[LocalPath](_ => Files.createTempDirectory("klog-new"), delete)

  private val stores = Seq[(String, () => WritableSegmentStore)](
    "local disk" -> (() => LocalStore),
    "a file system that renames" -> (() => new HadoopStore(started(new FileSystemOfTest))),
    "objects" -> (() => new HadoopStore(started(new ObjectsOfTest)))
  )

  for ((name, store) <- stores) {
    folder.test(s"$name: a complete file has its bytes and its name") { folder =>
      Using.resource(store().create(s"$folder/t-0/1.log")) { file =>
        file.write(Array[Byte](1, 2))
        file.write(Array[Byte](3))
        assert(!Files.exists(folder.resolve("t-0/1.log")))
        file.complete()
      }
      assertEquals(Files.readAllBytes(folder.resolve("t-0/1.log")).toSeq, Seq[Byte](1, 2, 3))
      assertEquals(namesIn(folder), Seq("1.log"))
    }

    folder.test(s"$name: a file that is closed before leaves nothing") { folder =>
      val file = store().create(s"$folder/t-0/1.log")
      file.write(Array[Byte](1))
      file.close()
      assertEquals(namesIn(folder), Nil)
    }

    folder.test(s"$name: so does one whose task is killed, which stays interrupted") { folder =>
      val file = store().create(s"$folder/t-0/1.log")
      file.write(Array[Byte](1))
      Thread.currentThread.interrupt()
      file.close()
      assert(Thread.interrupted())
      assertEquals(namesIn(folder), Nil)
    }
  }

  for ((failure, words) <- Seq("rename" -> "cannot get its name", "create" -> "no answer"))
    folder.test(s"a file whose $failure fails leaves nothing") { folder =>
      val files = started(new FileSystemOfTest(failure))
      val error = intercept[IOException] {
        Using.resource(new HadoopStore(files).create(s"$folder/t-0/1.log")) { file =>
          file.write(Array[Byte](1))
          file.complete()
        }
      }
      assert(error.getMessage.contains(words), error.getMessage)
      assertEquals(namesIn(folder), Nil)
    }

  folder.test("an object whose last part is not sent is not there") { folder =>
    val error = intercept[IOException] {
      Using.resource(new HadoopStore(started(new ObjectsOfTest("close"))).create(s"$folder/t-0/1.log")) {
        file =>
          file.write(Array[Byte](1))
          file.complete()
      }
    }
    assertEquals((error.getMessage, namesIn(folder)), ("not sent", Nil))
  }

  private def started[T <: FileSystem](files: T): T = {
    files.initialize(URI.create("file:///"), new Configuration(false))
    files
  }

  private def namesIn(folder: LocalPath): Seq[String] =
    if (Files.isDirectory(folder.resolve("t-0")))
      Using.resource(Files.list(folder.resolve("t-0")))(_.iterator.asScala.map(_.getFileName.toString).toList)
    else Nil

  private def delete(folder: LocalPath): Unit =
    Using.resource(Files.walk(folder))(_.iterator.asScala.toList.reverse.foreach(Files.delete))
}

/** Local disk by Hadoop; a thread that is interrupted is refused, as HDFS does. */
private class FileSystemOfTest(failure: String = "") extends RawLocalFileSystem {
  override def getScheme: String = "file"

  override def rename(from: Path, to: Path): Boolean = failure != "rename" && super.rename(from, to)

  override def delete(path: Path, recursive: Boolean): Boolean = {
    if (Thread.currentThread.isInterrupted) throw new IOException("interrupted")
    super.delete(path, recursive)
  }

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream = {
    val out = super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
    if (failure == "create") {
      out.close()
      throw new IOException("no answer")
    }
    out
  }
}

/** Objects, which are files: each is there when its stream is closed, and not if it is aborted. */
private final class ObjectsOfTest(failure: String = "") extends RawLocalFileSystem {
  override def getScheme: String = "s3a"

  override def createNonRecursive(
      path: Path,
      permission: FsPermission,
      flags: EnumSet[CreateFlag],
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream = new FSDataOutputStream(new ObjectOutput(path), null)

  private final class ObjectOutput(path: Path) extends ByteArrayOutputStream with Abortable {
    private var isAborted = false

    override def abort(): Abortable.AbortableResult = {
      isAborted = true
      null
    }

    override def close(): Unit = if (!isAborted) {
      if (failure == "close") throw new IOException("not sent")
      val file = java.nio.file.Paths.get(path.toUri.getPath)
      Files.createDirectories(file.getParent)
      val _ = Files.write(file, toByteArray)
    }
  }
}
