package klog.slice

import java.nio.charset.StandardCharsets
import java.util.{Base64, List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Using

import klog.logformat.RecordRows
import klog.store.SegmentStores

/** The reader follows docs/slice.md: each golden task gives its golden rows. */
class GoldenSliceSuite extends munit.FunSuite {
  import GoldenSlices._

  for ((name, golden) <- all)
    test(name) {
      if (golden.get("isPythonOnly") == true) assert(slices(golden).exists(!_.areMarkersInFile))
      else {
        val expected = Option(golden.get("error")).map(_.toString).toLeft(rowsOf(golden))
        assertEquals(result(golden), expected)
      }
    }

  test("there are golden files") {
    assert(all.length > 50)
  }

  /** Returns the error's name, or the rows. */
  private def result(golden: JavaMap[String, AnyRef]): Either[String, Seq[AnyRef]] =
    try
      Right(
        Using.resource(new TaskReader(slices(golden), allColumns, new SegmentStores, Long.MinValue))(read)
      )
    catch {
      case _: CorruptFileError | _: MissingFileError => Left("corrupt")
      case _: SliceChangedError => Left("changed")
      case _: UnsupportedFormatError => Left("format")
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
