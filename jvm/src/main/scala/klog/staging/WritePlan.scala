package klog.staging

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import scala.jdk.CollectionConverters._

/** The plan of a write, which Python has made (docs/write-plan.md): what all its tasks have in common.
  *
  * The rule: a reader ignores fields that it does not know, and refuses another format.
  *
  * @param topic
  *   the topic of all rows; None if each row names it
  * @param lastBatches
  *   the last batch of each writer that the topic has already
  */
final case class WritePlan(
    writeId: String,
    root: String,
    topic: Option[String],
    deadLetterTopic: Option[String],
    transactionalId: Option[String],
    transactionVersion: Option[Long],
    bufferBytes: Long,
    topics: Map[String, TopicPlan],
    lastBatches: Map[String, Long]
) {

  /** Returns whether the topic has this batch of a writer already. */
  def isCommitted(writer: Option[Writer]): Boolean =
    writer.exists(by => by.batchId <= lastBatches.getOrElse(by.name, -1L))

  def topicPlan(topic: String): TopicPlan = topics.getOrElse(
    topic,
    throw StagingError.failed(
      s"there is no topic $topic for dead letters; create it with klog topics create"
    )
  )
}

/** The plan for one topic: the state that its segments are staged on.
  *
  * @param logEnds
  *   the first offset that a task writes in each partition
  */
final case class TopicPlan(
    topic: String,
    topicId: String,
    baseVersion: Long,
    logEnds: Array[Long],
    leaderEpochs: Array[Int],
    settings: StagingSettings
) {
  def partitions: Int = logEnds.length
}

/** How rows become segments: sizes in bytes, times in ms. */
final case class StagingSettings(
    codecName: String,
    compressionLevel: Option[Int],
    batchBytes: Int,
    maxBatchBytes: Int,
    segmentBytes: Long,
    segmentMs: Long,
    segmentIndexBytes: Long,
    indexIntervalBytes: Long,
    minIndexedBytes: Long,
    isAppendTime: Boolean,
    isCompacted: Boolean,
    beforeMaxMs: Option[Long],
    afterMaxMs: Option[Long],
    partitioner: String
) {
  val codec: Int = StagingSettings.Codecs.indexOf(codecName)
}

object StagingSettings {
  val Codecs: Seq[String] = Vector("none", "gzip", "snappy", "lz4", "zstd")
  val Partitioners: Seq[String] = Vector("murmur2", "sticky", "round-robin")
}

object WritePlan {
  private val NewestFormat = 1
  private val mapper = new ObjectMapper

  /** Reads a plan from its JSON.
    *
    * @throws StagingError
    *   if it is of another version of klog
    */
  def of(json: String): WritePlan = {
    val plan = mapper.readTree(json)
    checkFormat(plan)
    WritePlan(
      field(plan, "writeId").asText,
      field(plan, "root").asText,
      text(field(plan, "topic")),
      text(field(plan, "deadLetterTopic")),
      text(field(plan, "transactionalId")),
      number(field(plan, "transactionVersion")),
      field(plan, "bufferBytes").asLong,
      entries(field(plan, "topics")).map { case (topic, planned) => topic -> topicOf(topic, planned) }.toMap,
      entries(field(plan, "lastBatches")).map { case (writer, batch) => writer -> batch.asLong }.toMap
    )
  }

  private def topicOf(topic: String, plan: JsonNode): TopicPlan = TopicPlan(
    topic,
    field(plan, "topicId").asText,
    field(plan, "baseVersion").asLong,
    field(plan, "logEnds").elements.asScala.map(_.asLong).toArray,
    field(plan, "leaderEpochs").elements.asScala.map(_.asInt).toArray,
    settingsOf(field(plan, "settings"))
  )

  private def settingsOf(settings: JsonNode): StagingSettings = {
    def long(name: String): Long = field(settings, name).asLong
    StagingSettings(
      known("codec", field(settings, "codec").asText, StagingSettings.Codecs),
      number(field(settings, "compressionLevel")).map(_.toInt),
      field(settings, "batchBytes").asInt,
      field(settings, "maxBatchBytes").asInt,
      long("segmentBytes"),
      long("segmentMs"),
      long("segmentIndexBytes"),
      long("indexIntervalBytes"),
      long("minIndexedBytes"),
      field(settings, "isAppendTime").asBoolean,
      field(settings, "isCompacted").asBoolean,
      number(field(settings, "beforeMaxMs")),
      number(field(settings, "afterMaxMs")),
      known("partitioner", field(settings, "partitioner").asText, StagingSettings.Partitioners)
    )
  }

  private def known(name: String, value: String, values: Seq[String]): String =
    if (values.contains(value)) value else throw unknown(s"this klog has no $name '$value'")

  private def checkFormat(plan: JsonNode): Unit = {
    val format = plan.path("format")
    if (!format.isInt || format.asInt < 1 || format.asInt > NewestFormat) {
      throw unknown(s"its format is '$format', and this klog reads 1 to $NewestFormat")
    }
  }

  private def field(node: JsonNode, name: String): JsonNode =
    Option(node.get(name)).getOrElse(throw unknown(s"it has no field '$name'"))

  private def text(node: JsonNode): Option[String] = Option.when(!node.isNull)(node.asText)

  private def number(node: JsonNode): Option[Long] = Option.when(!node.isNull)(node.asLong)

  private def entries(node: JsonNode): Iterator[(String, JsonNode)] =
    node.properties.asScala.iterator.map(entry => entry.getKey -> entry.getValue)

  private def unknown(reason: String): StagingError = new StagingError(
    "UnsupportedFormatError",
    s"write plan: $reason. Use one version of klog on the driver and on all executors"
  )
}
