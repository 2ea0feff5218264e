package klog.slice

import java.nio.file.{Files, Paths}
import java.util.{List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.ObjectMapper

import klog.logformat.WantedColumns
import klog.store.LocalStore

/** The golden tasks of docs/slice.md, which both engines read. */
object GoldenSlices {
  private val json = new ObjectMapper
  private val folder = Paths.get("tests/contracts/slice")

  val allColumns: WantedColumns = WantedColumns(
    key = true,
    value = true,
    offset = true,
    timestamp = true,
    timestampType = true,
    headers = true
  )

  /** Name and content of each file. */
  lazy val all: Seq[(String, JavaMap[String, AnyRef])] = {
    val files =
      Using.resource(Files.list(folder))(_.iterator.asScala.filter(_.toString.endsWith(".json")).toSeq.sorted)
    files.map(path =>
      path.getFileName.toString -> json.readValue(path.toFile, classOf[JavaMap[String, AnyRef]])
    )
  }

  /** Returns the slices of the task of a file. */
  def slices(golden: JavaMap[String, AnyRef]): Iterator[Slice] =
    Slice.expandTask(golden.get("task").asInstanceOf[JavaList[_]]).map(withIdentity)

  /** Returns a slice with the identity and stamp of a broker's file here. */
  private def withIdentity(slice: Slice): Slice =
    if (slice.isCommitted) slice
    else
      Using.resource(LocalStore.open(slice.path, Slice.Unknown)) { file =>
        slice.copy(identity = file.identity, stamp = if (slice.fileSizeBytes < 0) "" else file.stamp)
      }
}
