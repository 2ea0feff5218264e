package klog.logformat

import java.nio.charset.StandardCharsets.US_ASCII

/** A broker's `partition.metadata`: the lines `version: n` and `topic_id: id` (docs/format.md, 13).
  *
  * The rule is Python's (`klog.logformat.broker_files.metadata_files`): a file that is anything else has no id,
  * and neither has one whose id is all zeros.
  */
object PartitionMetadata {
  private val Version = "-?[0-9]{1,19}"
  private val TopicId = "[A-Za-z0-9_-]{22}"
  private val NoTopicId = "A" * 22

  /** Returns the id of the topic; empty if there is none. */
  def topicId(data: Array[Byte]): String = {
    val lines = new String(data, US_ASCII).linesIterator.map(_.split(":\\s+", -1).toSeq).toSeq
    lines match {
      case Seq(Seq("version", version), Seq("topic_id", id)) if data.forall(_ >= 0) && isVersion(version) =>
        if (id.matches(TopicId) && id != NoTopicId) id else ""
      case _ => ""
    }
  }

  private def isVersion(text: String): Boolean = text.matches(Version) && BigInt(text) >= 0
}
