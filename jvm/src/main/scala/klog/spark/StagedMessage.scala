package klog.spark

import org.apache.spark.sql.connector.write.WriterCommitMessage

import klog.staging.WriteCounts

/** What a task of the JVM tells the driver: Python's message, and what it has written. */
final case class StagedMessage(python: WriterCommitMessage, counts: WriteCounts) extends WriterCommitMessage

object StagedMessage {

  /** Returns the messages for Python's commit. Of a task that did not end Spark has null. */
  def toPython(messages: Array[WriterCommitMessage]): Array[WriterCommitMessage] = messages.map {
    case StagedMessage(python, _) => python
    case other => other
  }

  /** Returns what all tasks have written. */
  def total(messages: Array[WriterCommitMessage]): WriteCounts = {
    val sum = new WriteCounts
    messages.foreach {
      case StagedMessage(_, counts) => sum.add(counts)
      case _ =>
    }
    sum
  }
}
