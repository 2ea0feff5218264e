package klog.spark

import scala.collection.mutable

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.spark.internal.Logging

/** The warnings of a class, as Spark's log gets them. */
object LoggedWarnings extends Logging {
  logDebug("Spark configures its log when it is first used, and forgets what listens to it")

  /** Returns what a class warns of while something is done. */
  def of(logged: Class[_])(work: => Unit): Seq[String] = {
    val logger = LogManager.getLogger(logged.getName).asInstanceOf[Logger]
    val warnings = new Warnings
    warnings.start()
    logger.addAppender(warnings)
    try work
    finally logger.removeAppender(warnings)
    warnings.texts.toSeq
  }

  private final class Warnings extends AbstractAppender("warnings", null, null, true, Property.EMPTY_ARRAY) {
    val texts = mutable.ArrayBuffer.empty[String]

    override def append(event: LogEvent): Unit =
      if (event.getLevel == Level.WARN) texts += event.getMessage.getFormattedMessage
  }
}
