package org.apache.spark.sql.execution.python

import java.io.{DataInputStream, DataOutputStream}

import net.razorvine.pickle.Pickler
import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.internal.SQLConf

import scala.util.Try
import scala.util.control.NoStackTrace

/** Starts Spark's Python daemons before Spark needs them: each imports PySpark for a second.
  *
  * The rule: Spark itself starts a daemon, with the environment by which it finds it again, and forks it; the
  * fork is given up. Spark's runner is not public, so this file lies in its package.
  */
object PythonDaemons {

  /** Starts the daemons of some modules, one after the other on another thread. What fails will fail again when
    * Spark needs the daemon, and is an error then.
    */
  def start(function: PythonFunction, modules: Seq[String]): Unit = {
    val conf = SQLConf.get
    val thread = new Thread(
      () =>
        modules.foreach(module =>
          Try(SQLConf.withExistingConf(conf)(new Start(function, module).runInPython()))
        ),
      "klog-python-daemons"
    )
    thread.setDaemon(true)
    thread.start()
  }

  /** Throws if this Spark's runner has other methods. */
  def probe(): Unit = {
    val runner = classOf[PythonPlannerRunner[_]]
    runner.getConstructor(classOf[PythonFunction])
    runner.getMethod("writeToPython", classOf[DataOutputStream], classOf[Pickler])
    runner.getMethod("runInPython", java.lang.Boolean.TYPE)
  }

  private final class Start(function: PythonFunction, override val workerModule: String)
      extends PythonPlannerRunner[Unit](function) {
    override protected def writeToPython(out: DataOutputStream, pickler: Pickler): Unit = throw Started
    override protected def receiveFromPython(in: DataInputStream): Unit = ()
  }

  private object Started extends RuntimeException("the daemon is there") with NoStackTrace
}
