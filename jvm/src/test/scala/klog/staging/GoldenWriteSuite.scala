package klog.staging

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.Base64
import java.util.zip.CRC32C

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import klog.codecs.InflatedBatches
import klog.logformat._
import klog.store.{NewFile, SegmentFile, WritableSegmentStore}

/** The tasks follow docs/write-plan.md: each golden plan gives its golden message and files, in one step and
  * in two.
  */
class GoldenWriteSuite extends munit.FunSuite {
  private val mapper = new ObjectMapper
  private val folder = Paths.get("tests/contracts/write_plan")
  private val all = WantedColumns(true, true, true, true, true, true)

  for (path <- goldenFiles; isInTwoSteps <- Seq(false, true)) test(nameOf(path, isInTwoSteps)) {
    val golden = mapper.readTree(path.toFile)
    val store = new MemoryStore
    try {
      val message = stage(golden, store, isInTwoSteps)
      assert(!golden.has("error"))
      assertEquals(comparable(golden, message), comparable(golden, golden.get("message")))
      assertEquals(store.files.keySet.toSet, golden.get("files").fieldNames.asScala.toSet)
      for (file <- golden.get("files").properties.asScala)
        assertEquals(contents(file.getValue, store.files(file.getKey)), file.getValue, file.getKey)
    } catch {
      case exc: StagingError if golden.has("error") =>
        assert(exc.sentence.contains(s"row ${golden.get("error").get("row").asInt} of task "), exc.sentence)
    }
  }

  test("there are golden files") {
    assert(goldenFiles.length > 35)
  }

  private def goldenFiles: Seq[Path] =
    Using.resource(Files.list(folder))(_.iterator.asScala.filter(_.toString.endsWith(".json")).toSeq.sorted)

  private def nameOf(path: Path, isInTwoSteps: Boolean): String =
    path.getFileName.toString + (if (isInTwoSteps) " in two steps" else "")

  private def stage(golden: JsonNode, store: MemoryStore, isInTwoSteps: Boolean): JsonNode = {
    val plan = WritePlan.of(golden.get("plan").toString)
    val task = golden.get("task")
    val writer = Option(task.get("writer")).filterNot(_.isNull).map { node =>
      Writer(text(node, "name"), node.get("batchId").asLong, text(node, "queryId"), text(node, "runId"))
    }
    val attempt =
      TaskAttempt.of(
        plan,
        writer,
        task.get("index").asInt,
        task.get("attempt").asLong,
        task.get("nowMs").asLong
      )
    val rows = golden.get("rows").asScala.flatMap(_.asScala).map(rowOf)
    val message =
      if (isInTwoSteps) stagedInTwoSteps(plan, writer, attempt, store, rows)
      else
        Using.resource(new RowStager(plan, writer, attempt, new StagedFiles(store, plan.root))) { stager =>
          rows.foreach(stager.add)
          stager.finish()
        }
    mapper.readTree(message.toJson)
  }

  private def stagedInTwoSteps(
      plan: WritePlan,
      writer: Option[Writer],
      task: TaskAttempt,
      store: MemoryStore,
      rows: Iterable[RowToWrite]
  ): CommitMessage = {
    val cut = mutable.ArrayBuffer.empty[KeyedBatch]
    def add(topic: String, partition: Int, batch: EncodedBatch): Unit = {
      val number = cut.count(other => (other.key.topic, other.key.partition) == (topic, partition))
      cut += KeyedBatch(BatchKey(topic, partition, task.index, number), batch)
    }
    Using.resource(new TaskRows(plan, writer, task, leavesPartial = true, add)) { encoder =>
      rows.foreach(encoder.add)
      encoder.flush()
    }
    Using.resource(new BatchStager(plan, writer, task, new StagedFiles(store, plan.root))) { stager =>
      cut.sortBy(_.key).foreach(stager.add)
      stager.finish()
    }
  }

  private def text(node: JsonNode, name: String): String = node.get(name).asText

  private def rowOf(node: JsonNode): RowToWrite = {
    val row = new RowToWrite
    set(row.fields.key, node.path("key"))
    set(row.fields.value, node.path("value"))
    if (node.hasNonNull("topic")) row.topic = text(node, "topic")
    row.hasPartition = node.hasNonNull("partition")
    row.partition = node.path("partition").asLong
    row.hasTimestamp = node.hasNonNull("timestampUs")
    row.timestampMs = Math.floorDiv(node.path("timestampUs").asLong, 1000L)
    for (header <- node.path("headers").asScala) {
      val number = row.fields.headers.add()
      set(row.fields.headers.key(number), header.get(0))
      set(row.fields.headers.value(number), header.path(1))
    }
    row
  }

  private def set(range: ByteRange, node: JsonNode): Unit =
    if (node.isMissingNode || node.isNull) range.setNull()
    else if (node.has("base64")) range.set(Base64.getDecoder.decode(text(node, "base64")))
    else range.set(node.asText.getBytes(UTF_8))

  /** Returns a message without sizes that depend on a codec's library, and without topics that only an empty
    * Arrow batch names: rows come one by one here.
    */
  private def comparable(golden: JsonNode, message: JsonNode): JsonNode = {
    val result = message.deepCopy[ObjectNode]
    val topics = result.get("topics").asInstanceOf[ObjectNode]
    if (golden.get("rows").asScala.forall(_.isEmpty)) topics.removeAll()
    for (topic <- topics.properties.asScala; segment <- topic.getValue.get("segments").asScala) {
      val isDead = text(segment, "file").startsWith(s"${golden.get("plan").get("deadLetterTopic").asText}-")
      if (text(segment, "codec") != "none" || isDead)
        segment.asInstanceOf[ObjectNode].remove(java.util.List.of("sizeBytes", "crc32c"))
    }
    mapper.readTree(result.toString)
  }

  /** Returns a file in the form of its golden one. */
  private def contents(expected: JsonNode, data: Array[Byte]): JsonNode = {
    val result = mapper.createObjectNode()
    if (expected.has("base64")) {
      val crc = new CRC32C
      crc.update(data)
      result.put("sizeBytes", data.length).put("crc32c", crc.getValue)
      result.put("base64", Base64.getEncoder.encodeToString(data))
    } else result.set("batches", batches(data))
    mapper.readTree(result.toString)
  }

  private def batches(data: Array[Byte]): ArrayNode = {
    val result = mapper.createArrayNode()
    val buffer = ByteBuffer.wrap(data)
    val header = new BatchHeader
    var position = 0
    while (position < data.length) {
      header.read(buffer, position, position.toLong)
      header.checkCrc(buffer, position.toLong)
      val batch = result.addObject()
      batch.put("baseOffset", header.baseOffset).put("partitionLeaderEpoch", buffer.getInt(position + 12))
      batch
        .put("codec", StagingSettings.Codecs(header.codec))
        .put("attributesWithoutCodec", header.attributes & ~7)
      batch.put("lastOffsetDelta", header.lastOffsetDelta).put("baseTimestamp", header.baseTimestampMs)
      batch.put("maxTimestamp", header.maxTimestampMs).put("producerId", header.producerId)
      batch
        .put("producerEpoch", buffer.getShort(position + 51))
        .put("baseSequence", buffer.getInt(position + 53))
      batch.set("records", records(header, data))
      position = header.end
    }
    result
  }

  private def records(header: BatchHeader, data: Array[Byte]): ArrayNode = {
    val result = mapper.createArrayNode()
    val rows = new RecordRows(all)
    val cursor = new RecordCursor
    val inflated = new InflatedBatches
    val start = header.start + BatchHeader.HeaderBytes
    if (header.codec == 0) cursor.open(header, data, start, header.end, 0)
    else {
      inflated.add(header.codec, header.magic, data, start, header.end, 0, canReplace = true)
      cursor.open(header, inflated.data, inflated.start, inflated.end, 0)
    }
    cursor.fill(rows, 0, Long.MaxValue)
    for (row <- 0 until rows.count) {
      val record = result.addObject()
      record.put("offset", rows.offsets(row)).put("timestampMs", rows.timestampsUs(row) / 1000)
      record.set("key", textOf(rows.data, rows.keys.starts(row), rows.keys.lengths(row)))
      record.set("value", textOf(rows.data, rows.values.starts(row), rows.values.lengths(row)))
      val headers = record.putArray("headers")
      for (number <- rows.firstHeaders(row) until rows.firstHeaders(row) + rows.headerCounts(row)) {
        val pair = headers.addArray()
        val name =
          textOf(rows.data, rows.headers.keys.starts(number), rows.headers.keys.lengths(number)).asText
        pair.add(name)
        if (name != "klog.dead-letter.reason")
          pair.add(textOf(rows.data, rows.headers.values.starts(number), rows.headers.values.lengths(number)))
      }
    }
    inflated.close()
    result
  }

  private def textOf(data: Array[Byte], start: Int, length: Int): JsonNode = {
    val nodes = mapper.getNodeFactory
    if (length < 0) nodes.nullNode
    else {
      val bytes = data.slice(start, start + length)
      val value = new String(bytes, UTF_8)
      if (value.getBytes(UTF_8).sameElements(bytes)) nodes.textNode(value)
      else mapper.createObjectNode().put("base64", Base64.getEncoder.encodeToString(bytes))
    }
  }
}

/** A store in memory; only `create` is there. */
private final class MemoryStore extends WritableSegmentStore {
  val files: mutable.Map[String, Array[Byte]] = mutable.LinkedHashMap.empty

  override def create(path: String): NewFile = new NewFile {
    private val bytes = new ByteArrayOutputStream
    override def write(chunk: Array[Byte]): Unit = bytes.write(chunk)
    override def complete(): Unit = files(path.stripPrefix("root/")) = bytes.toByteArray
    override def close(): Unit = ()
  }

  override def open(path: String, sizeBytes: Long): SegmentFile = throw new UnsupportedOperationException
}
