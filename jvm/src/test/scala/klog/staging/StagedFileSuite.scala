package klog.staging

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import klog.store.LocalStore
import munit.FunSuite

/** A file of a task has its name when it is complete, and leaves nothing otherwise. */
class StagedFileSuite extends FunSuite {
  private val root = FunFixture[Path](_ => Files.createTempDirectory("klog-staged"), _ => ())

  root.test("a complete file has all its bytes, and its time is counted") { root =>
    val files = new StagedFiles(LocalStore, root.toString)
    Using.resource(files.create("t-0/1.log")) { file =>
      file.write(Array[Byte](1, 2))
      file.write(Array[Byte](3))
      assertEquals(names(root).filter(_ == "1.log"), Nil)
      file.complete()
    }
    assertEquals(Files.readAllBytes(root.resolve("t-0/1.log")).toSeq, Seq[Byte](1, 2, 3))
    assertEquals(names(root), Seq("1.log"))
    assert(files.counts.storeNanos > 0)
  }

  root.test("a file that is closed before it is complete is removed") { root =>
    val file = new StagedFiles(LocalStore, root.toString).create("t-0/1.log")
    file.write(Array[Byte](1))
    assertEquals(names(root).length, 1)
    file.close()
    assertEquals(names(root), Nil)
  }

  root.test("an error names the file and what to do") { root =>
    Files.writeString(root.resolve("t-0"), "a file where a directory belongs")
    val error =
      intercept[StagingError](new StagedFiles(LocalStore, root.toString).put("t-0/1.log", Array[Byte](1)))
    assert(error.getMessage.contains(s"$root/t-0/1.log: not written"), error.getMessage)
  }

  private def names(root: Path): Seq[String] =
    if (Files.isDirectory(root.resolve("t-0")))
      Using.resource(Files.list(root.resolve("t-0")))(_.iterator.asScala.map(_.getFileName.toString).toList)
    else Nil
}
