package klog.store

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

/** A file counts the requests that its reads make of the store. */
class SegmentRequestsSuite extends munit.FunSuite {
  private val path = Files.write(Files.createTempFile("klog", ".log"), Array.tabulate[Byte](64)(_.toByte))

  path.toFile.deleteOnExit()

  private def requests(store: SegmentStore, positions: Long*): Long = {
    val file = store.open(path.toString, 64)
    try {
      val bytes = new Array[Byte](16)
      for (position <- positions) {
        assertEquals(file.read(position, bytes, 0, 16), 16)
        assertEquals(bytes(0).toLong, position)
      }
      file.requests
    } finally file.close()
  }

  private def hadoop: HadoopStore =
    new HadoopStore(new HadoopPath(path.toUri).getFileSystem(new Configuration(false)))

  test("a stream is one request, and each seek another one") {
    assertEquals(requests(hadoop), 0L)
    assertEquals(requests(hadoop, 0, 16, 32), 1L)
    assertEquals(requests(hadoop, 16, 32), 1L)
    assertEquals(requests(hadoop, 0, 16, 0), 2L)
  }

  test("each read of a disk is a request") {
    assertEquals(requests(LocalStore, 0, 16, 32), 3L)
  }
}
