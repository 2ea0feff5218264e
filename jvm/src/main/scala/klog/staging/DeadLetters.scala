package klog.staging

import java.nio.charset.StandardCharsets.UTF_8

import klog.logformat.{ByteRange, HeaderRanges}

/** Rejected rows as rows of the topic for dead letters (docs/write-plan.md, Dead letters).
  *
  * The rule: a dead letter has the key, the value and the headers of its row, without those of klog's
  * names, followed by headers that say why it was rejected. It has no partition and no timestamp.
  *
  * @param writer
  *   the writer's name and its batch, or the write id
  */
final class DeadLetters(writer: String, task: Int) {
  import DeadLetters._

  private val letter = new RowToWrite

  /** Returns the dead letter of a row, which is used again for the next one.
    *
    * @param topic
    *   the topic of the row; None if it names none
    * @param timestampMs
    *   the timestamp of the row, if it has one
    * @param number
    *   its number among all rows of the task
    */
  def of(
      row: RowToWrite,
      topic: Option[String],
      timestampMs: Option[Long],
      reason: String,
      number: Long
  ): RowToWrite = {
    val fields = letter.fields
    copy(row.fields.key, fields.key)
    copy(row.fields.value, fields.value)
    fields.headers.count = 0
    val attempt = addOwnHeaders(row.fields.headers)
    add("reason", reason)
    topic.foreach(add("topic", _))
    if (row.hasPartition) add("partition", row.partition.toString)
    timestampMs.foreach(time => add("timestamp", time.toString))
    add("writer", writer)
    add("row", s"$task/$number")
    add("attempt", attempt.toString)
    letter
  }

  /** Adds the headers of a row; returns the number of this attempt. */
  private def addOwnHeaders(headers: HeaderRanges): Long = {
    var attempt = 1L
    for (number <- 0 until headers.count) {
      val name = text(headers.key(number))
      if (name == s"${Prefix}attempt") attempt = attemptAfter(headers.value(number)).getOrElse(attempt)
      if (!name.startsWith(Prefix)) {
        val added = letter.fields.headers.add()
        if (headers.key(number).isNull) letter.fields.headers.key(added).set(Array.emptyByteArray)
        else copy(headers.key(number), letter.fields.headers.key(added))
        copy(headers.value(number), letter.fields.headers.value(added))
      }
    }
    attempt
  }

  private def attemptAfter(value: ByteRange): Option[Long] = {
    val digits = text(value)
    Option.when(digits.matches("[0-9]{1,9}"))(digits.toLong + 1)
  }

  private def add(name: String, value: String): Unit = {
    val added = letter.fields.headers.add()
    letter.fields.headers.key(added).set(s"$Prefix$name".getBytes(UTF_8))
    letter.fields.headers.value(added).set(value.getBytes(UTF_8))
  }

  private def copy(from: ByteRange, to: ByteRange): Unit = to.set(from.data, from.start, from.length)

  private def text(bytes: ByteRange): String =
    if (bytes.isNull) "" else new String(bytes.data, bytes.start, bytes.length, UTF_8)
}

object DeadLetters {
  private val Prefix = "klog.dead-letter."
}
