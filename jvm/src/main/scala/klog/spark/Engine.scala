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

  /** Returns why Python writes; empty if the JVM does.
    *
    * @param reason
    *   why the JVM cannot write; empty if it can
    * @throws IllegalArgumentException
    *   if the JVM has to, and cannot
    */
  def pythonWriteReason(reason: => String): String
}

object Engine {

  /** Returns what the progress of a stream says: why Python has done a micro-batch, empty if the JVM has. */
  def metrics(pythonReason: String): Map[String, String] =
    if (pythonReason.isEmpty) Map("engine" -> "jvm")
    else Map("engine" -> "python", "engineReason" -> pythonReason)

  case object Auto extends Engine {
    override def isPython(reason: String): Boolean = reason.nonEmpty
    override def pythonWriteReason(reason: => String): String = reason
  }

  case object Jvm extends Engine {
    override def isPython(reason: String): Boolean = {
      refuse("read", "Read", reason)
      false
    }

    override def pythonWriteReason(reason: => String): String = {
      refuse("write", "Write", reason)
      ""
    }

    private def refuse(verb: String, advice: String, reason: String): Unit = if (reason.nonEmpty) {
      throw new IllegalArgumentException(
        s"""engine: jvm cannot $verb this: $reason. $advice with .option("engine", "auto") or "python""""
      )
    }
  }

  /** @param setBy
    *   what says so: the option or a conf
    */
  final case class Python(setBy: String) extends Engine {
    override def isPython(reason: String): Boolean = true
    override def pythonWriteReason(reason: => String): String = setBy
  }

  /** The engines of reads, and of writes if they have none of their own, that do not say one. */
  private val OptionName = "engine"
  private val ReadConf = "spark.klog.engine"
  private val WriteConf = "spark.klog.write.engine"

  /** Returns the engine that the options of a read ask for, else the session. */
  def ofRead(options: CaseInsensitiveStringMap): Engine = of(options, Seq(ReadConf))

  /** Returns the engine that the options of a write ask for, else the session. */
  def ofWrite(options: CaseInsensitiveStringMap): Engine = of(options, Seq(WriteConf, ReadConf))

  /** Returns the engine that the options ask for, else the first conf that is set. */
  private def of(options: CaseInsensitiveStringMap, confs: Seq[String]): Engine = {
    val option = Option(options.get(OptionName)).map(OptionName -> _)
    val conf = confs.find(SQLConf.get.contains).map(name => name -> SQLConf.get.getConfString(name))
    val (name, text) = option.orElse(conf).getOrElse(OptionName -> "auto")
    text.toLowerCase(Locale.ROOT) match {
      case "python" => Python(if (option.isDefined) s"option $name" else s"conf $name")
      case "jvm" => Jvm
      case "auto" => Auto
      case word =>
        throw new IllegalArgumentException(s"$name: must be one of auto, python, jvm, got '$word'")
    }
  }
}
