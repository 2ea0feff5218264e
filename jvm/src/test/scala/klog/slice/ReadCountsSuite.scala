package klog.slice

import java.util.{Map => JavaMap}

import scala.collection.mutable
import scala.util.{Try, Using}

import klog.codecs.InflatedBatches
import klog.logformat.RecordRows
import klog.store.{LocalStore, SegmentFile, SegmentStore}

/** A task counts all bytes and requests that it needs of a store: for each golden task, also one that fails. */
class ReadCountsSuite extends munit.FunSuite {
  import GoldenSlices._

  private val filesRead = mutable.Set.empty[String]

  for ((name, golden) <- all) test(name) {
    val (store, counts) = (new CountedStore, new ReadCounts)
    read(golden, store, counts)
    assertEquals((counts.bytesRead, counts.requests), (store.bytes, store.reads))
  }

  test("the tasks read segments, indexes and the metadata of topics") {
    for (ending <- Seq(".log", ".index", "partition.metadata"))
      assert(filesRead.exists(_.endsWith(ending)), ending)
  }

  private def read(golden: JavaMap[String, AnyRef], store: SegmentStore, counts: ReadCounts): Unit = {
    val rows = new RecordRows(allColumns)
    Using.resource(new InflatedBatches) { inflated =>
      for (slice <- Try(slices(golden).toSeq).getOrElse(Nil)) {
        def reader() = new SliceReader(store, slice, inflated, rows, counts, Long.MinValue)
        Try(Using.resource(reader())(reader => while (reader.next()) {}))
      }
    }
  }

  /** Local disk, and what was read of it. */
  private final class CountedStore extends SegmentStore {
    var (bytes, reads) = (0L, 0L)

    override def open(path: String, sizeBytes: Long): SegmentFile = {
      val file = LocalStore.open(path, sizeBytes)
      new SegmentFile {
        override def sizeBytes: Long = file.sizeBytes
        override def identity: String = file.identity
        override def stamp: String = file.stamp
        override def requests: Long = file.requests
        override def close(): Unit = file.close()
        override def read(position: Long, into: Array[Byte], at: Int, size: Int): Int = {
          val read = file.read(position, into, at, size)
          bytes += read
          reads += 1
          filesRead += path
          read
        }
      }
    }
  }
}
