package klog.staging

import java.io.IOException

import scala.util.Using

import klog.store.{NewFile, SegmentFile, WritableSegmentStore}
import munit.FunSuite

/** Errors of a task's files name them, and what fails afterwards does not hide the first one. */
class StagedFileSuite extends FunSuite {

  /** A store whose files fail to be written, and then to be removed. */
  private object FailingStore extends WritableSegmentStore {
    override def create(path: String): NewFile = new NewFile {
      override def write(bytes: Array[Byte]): Unit = throw new IOException("the disk is full")
      override def complete(): Unit = ()
      override def close(): Unit = throw new IllegalStateException("not removed")
    }
    override def open(path: String, sizeBytes: Long): SegmentFile = throw new UnsupportedOperationException
  }

  for (
    (name, write) <- Seq[(String, StagedFiles => Unit)](
      "a whole file" -> (_.put("t-0/1.log", Array[Byte](1))),
      "a file in parts" -> (files => Using.resource(files.create("t-0/1.log"))(_.write(Array[Byte](1))))
    )
  )
    test(s"$name: the first error is shown, and names the file") {
      val files = new StagedFiles(FailingStore, "root")
      val error = intercept[StagingError](write(files))
      assert(error.getMessage.contains("root/t-0/1.log: not written: the disk is full"), error.getMessage)
      assertEquals(error.getSuppressed.map(_.getMessage).toSeq, Seq("not removed"))
      assert(files.counts.storeNanos > 0)
    }
}
