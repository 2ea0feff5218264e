package klog.store

import java.io.IOException
import java.net.SocketTimeoutException
import java.nio.file.{AccessDeniedException, FileSystemException}

import org.apache.hadoop.hdfs.protocol.DSQuotaExceededException
import org.apache.hadoop.security.AccessControlException

/** A request that is refused is refused again, one without an answer may succeed later. */
class StoreErrorsSuite extends munit.FunSuite {
  for (
    error <- Seq(
      new AccessDeniedException("s3a://bucket/a"),
      new FileSystemException("/a", null, "No space left on device"),
      new IOException("Read-only file system"),
      new AccessControlException("Permission denied: user=ann"),
      new DSQuotaExceededException(1, 2),
      new IOException("a task failed", new AccessDeniedException("s3a://bucket/a"))
    )
  )
    test(s"refused: $error") {
      assertEquals(StoreErrors.pythonClass(error), "StoreRefusedError")
    }

  for (
    error <- Seq(
      new SocketTimeoutException("Read timed out"),
      new FileSystemException("/a", null, "Input/output error"),
      new FileSystemException("/a"),
      new IOException
    )
  )
    test(s"without an answer: $error") {
      assertEquals(StoreErrors.pythonClass(error), "StoreError")
    }
}
