package klog.spark

import java.util.Locale

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The option `engine`, which Python has checked, or the conf of the session. */
sealed trait Engine {

  /** Returns whether Python has to read.
    *
    * @param reason
    *   why the JVM cannot; empty if it can
    * @throws IllegalArgumentException
    *   if the JVM has to, and cannot
    */
  def isPython(reason: String): Boolean
}

object Engine {
  case object Auto extends Engine {
    override def isPython(reason: String): Boolean = reason.nonEmpty
  }

  case object Jvm extends Engine {
    override def isPython(reason: String): Boolean = {
      if (reason.nonEmpty) {
        throw new IllegalArgumentException(
          s"""engine: jvm cannot read this: $reason. Read with .option("engine", "auto") or "python""""
        )
      }
      false
    }
  }

  case object Python extends Engine {
    override def isPython(reason: String): Boolean = true
  }

  /** The engine of reads that do not say one. */
  private val Default = "spark.klog.engine"

  /** Returns the engine that options ask for, else the session. */
  def of(options: CaseInsensitiveStringMap): Engine =
    Option(options.get("engine"))
      .getOrElse(SQLConf.get.getConfString(Default, "auto"))
      .toLowerCase(Locale.ROOT) match {
      case "python" => Python
      case "jvm" => Jvm
      case "auto" => Auto
      case word =>
        throw new IllegalArgumentException(s"$Default: must be one of auto, python, jvm, got '$word'")
    }
}
