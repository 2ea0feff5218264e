package klog.staging

import java.util.{LinkedHashMap, List => JavaList, Map => JavaMap}

import com.fasterxml.jackson.databind.ObjectMapper

import scala.jdk.CollectionConverters._

/** The segments that a task has staged for a topic. */
final case class StagedTopic(plan: TopicPlan, segments: Seq[StagedSegment])

/** What a task has done, for Python's commit (docs/write-plan.md, The message). */
final case class CommitMessage(
    writeId: String,
    task: TaskAttempt,
    writer: Option[Writer],
    isCommitted: Boolean,
    topics: Seq[StagedTopic]
) {
  import CommitMessage._

  def toJson: String = mapper.writeValueAsString(
    fields(
      "format" -> Int.box(Format),
      "writeId" -> writeId,
      "task" -> Int.box(task.index),
      "writer" -> writer.map(writerFields).orNull,
      "isCommitted" -> Boolean.box(isCommitted),
      "topics" -> fields(topics.map(topic => topic.plan.topic -> topicFields(topic)): _*)
    )
  )

  private def writerFields(writer: Writer): JavaMap[String, AnyRef] = fields(
    "name" -> writer.name,
    "batchId" -> Long.box(writer.batchId),
    "queryId" -> writer.queryId,
    "runId" -> writer.runId
  )

  private def topicFields(topic: StagedTopic): JavaMap[String, AnyRef] = fields(
    "topicId" -> topic.plan.topicId,
    "baseVersion" -> Long.box(topic.plan.baseVersion),
    "partitions" -> Int.box(topic.plan.partitions),
    "segments" -> topic.segments.map(segmentFields(topic.plan, _)).asJava
  )

  private def segmentFields(plan: TopicPlan, segment: StagedSegment): JavaMap[String, AnyRef] = fields(
    "partition" -> Int.box(segment.partition),
    "file" -> segment.file,
    "baseOffset" -> Long.box(segment.baseOffset),
    "nextOffset" -> Long.box(segment.nextOffset),
    "offsetShift" -> Int.box(0),
    "sizeBytes" -> Long.box(segment.sizeBytes),
    "indexBytes" -> Int.box(segment.indexBytes),
    "timeIndexBytes" -> Int.box(segment.timeIndexBytes),
    "crc32c" -> Long.box(segment.crc32c),
    "recordCount" -> Long.box(segment.nextOffset - segment.baseOffset),
    "batchCount" -> Int.box(segment.batchCount),
    "minTimestampMs" -> Long.box(segment.minTimestampMs),
    "maxTimestampMs" -> Long.box(segment.maxTimestampMs),
    "leaderEpoch" -> Int.box(plan.leaderEpochs(segment.partition)),
    "codec" -> plan.settings.codecName,
    "producerIds" -> JavaList.of(Long.box(task.producerId)),
    "origin" -> "append"
  )
}

object CommitMessage {
  private val Format = 1
  private val mapper = new ObjectMapper

  private def fields(values: (String, AnyRef)*): JavaMap[String, AnyRef] = {
    val map = new LinkedHashMap[String, AnyRef]
    values.foreach { case (name, value) => map.put(name, value) }
    map
  }
}
