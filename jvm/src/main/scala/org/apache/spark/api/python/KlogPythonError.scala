package org.apache.spark.api.python

import org.apache.spark.QueryContext

/** Makes the exception that Spark throws for an error in Python: an error of a slice is the same class with
  * the same sentence, whichever engine reads. Spark's class is not public, so this file lies in its package.
  */
object KlogPythonError {

  /** Returns the exception.
    *
    * @param name
    *   the class of the error, in `klog.errors`
    */
  def of(name: String, sentence: String, cause: Throwable): RuntimeException = {
    val parameters = Map("msg" -> "klog's JVM engine", "traceback" -> s"klog.errors.$name: $sentence")
    new PythonException("PYTHON_EXCEPTION", parameters, cause, Array.empty[QueryContext], "")
  }

  /** Throws if Spark's class has no such constructor.
    *
    * @throws ReflectiveOperationException
    *   if it is missing
    */
  def probe(): Unit = {
    val text = classOf[String]
    val parameters = Seq(text, classOf[Map[_, _]], classOf[Throwable], classOf[Array[QueryContext]], text)
    val _ = classOf[PythonException].getConstructor(parameters: _*)
  }
}
