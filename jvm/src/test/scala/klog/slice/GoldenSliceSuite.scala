package klog.slice

import java.nio.charset.StandardCharsets
import java.nio.file.{Files, Path, Paths}
import java.util.{Base64, List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.ObjectMapper

import klog.logformat.{RecordRows, WantedColumns}
import klog.store.{LocalStore, SegmentStores}

/** The reader follows docs/slice.md: each golden task gives its golden rows. */
class GoldenSliceSuite extends munit.FunSuite {
  private val json = new ObjectMapper
  private val folder = Paths.get("tests/contracts/slice")
  private val all =
    WantedColumns(
      key = true,
      value = true,
      offset = true,
      timestamp = true,
      timestampType = true,
      headers = true
    )

  for (path <- goldenFiles) {
    val golden = json.readValue(path.toFile, classOf[JavaMap[String, AnyRef]])
    test(path.getFileName.toString) {
      if (golden.get("isPythonOnly") == true) assert(slices(golden).exists(!_.areMarkersInFile))
      else {
        val expected = Option(golden.get("error")).map(_.toString).toLeft(rowsOf(golden))
        assertEquals(result(golden), expected)
      }
    }
  }

  test("there are golden files") {
    assert(goldenFiles.length > 50)
  }

  private def goldenFiles: Seq[Path] =
    Using.resource(Files.list(folder))(_.iterator.asScala.filter(_.toString.endsWith(".json")).toSeq.sorted)

  /** Returns the error's name, or the rows. */
  private def result(golden: JavaMap[String, AnyRef]): Either[String, Seq[AnyRef]] =
    try Right(Using.resource(new TaskReader(slices(golden), all, new SegmentStores, Long.MinValue))(read))
    catch {
      case _: CorruptFileError | _: MissingFileError => Left("corrupt")
      case _: SliceChangedError => Left("changed")
      case _: UnsupportedFormatError => Left("format")
    }

  private def slices(golden: JavaMap[String, AnyRef]): Iterator[Slice] =
    Slice.expandTask(golden.get("task").asInstanceOf[JavaList[_]]).map(withIdentity)

  /** Returns a slice with the identity and stamp of a broker's file here. */
  private def withIdentity(slice: Slice): Slice =
    if (slice.isCommitted) slice
    else
      Using.resource(LocalStore.open(slice.path, Slice.Unknown)) { file =>
        slice.copy(identity = file.identity, stamp = if (slice.fileSizeBytes < 0) "" else file.stamp)
      }

  private def read(reader: TaskReader): Seq[AnyRef] = {
    val rows = Seq.newBuilder[AnyRef]
    while (reader.next()) rows ++= (0 until reader.rows.count).map(rowOf(reader.rows, _))
    rows.result()
  }

  private def rowOf(rows: RecordRows, row: Int): AnyRef = {
    val headers = rows.headers
    val pairs = (0 until rows.headerCounts(row)).map { number =>
      val header = rows.firstHeaders(row) + number
      val name = text(rows.data, headers.keys.starts(header), headers.keys.lengths(header))
      List(name, text(rows.data, headers.values.starts(header), headers.values.lengths(header))).asJava
    }
    Map[String, AnyRef](
      "offset" -> Long.box(rows.offsets(row)),
      "timestampUs" -> Long.box(rows.timestampsUs(row)),
      "timestampType" -> Long.box(rows.timestampTypes(row).toLong),
      "key" -> text(rows.data, rows.keys.starts(row), rows.keys.lengths(row)),
      "value" -> text(rows.data, rows.values.starts(row), rows.values.lengths(row)),
      "headers" -> (if (pairs.isEmpty) null else pairs.asJava)
    ).asJava
  }

  /** Returns bytes as a golden file has them. */
  private def text(data: Array[Byte], start: Int, length: Int): AnyRef =
    if (length < 0) null
    else {
      val bytes = data.slice(start, start + length)
      val decoded = new String(bytes, StandardCharsets.UTF_8)
      if (java.util.Arrays.equals(decoded.getBytes(StandardCharsets.UTF_8), bytes)) decoded
      else Map("base64" -> Base64.getEncoder.encodeToString(bytes)).asJava
    }

  private def rowsOf(golden: JavaMap[String, AnyRef]): Seq[AnyRef] =
    golden.get("rows").asInstanceOf[JavaList[JavaMap[String, AnyRef]]].asScala.toSeq.map { row =>
      row.asScala
        .map {
          case (name, number: Integer) => name -> Long.box(number.toLong)
          case other => other
        }
        .toMap
        .asJava
    }
}
