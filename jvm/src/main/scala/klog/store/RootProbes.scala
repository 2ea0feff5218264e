package klog.store

import java.util.{Collections, LinkedHashMap, Map => JavaMap}
import java.util.concurrent.TimeUnit

/** Which roots can be read, as this process has found out.
  *
  * The rule: a root that could be read is not tried again. One that could not is tried again after some
  * minutes, because somebody may have repaired it. The roots that were asked about least
  * recently are forgotten.
  *
  * @param nanoTime
  *   the clock
  */
private[store] final class RootProbes(nanoTime: () => Long) {
  import RootProbes._

  private val results = Collections.synchronizedMap(
    new LinkedHashMap[Key, Result](16, 0.75f, true) {
      override protected def removeEldestEntry(eldest: JavaMap.Entry[Key, Result]): Boolean = size > MaxRoots
    }
  )

  /** Returns why a client cannot read a root; empty if it can.
    *
    * @param client
    *   its id
    * @param probe
    *   tries to read it, and returns the same
    */
  def accessError(root: String, client: String)(probe: => String): String = {
    val key = (root, client)
    Option(results.get(key)).filter(isCurrent).map(_.error).getOrElse {
      val error = probe
      results.put(key, Result(error, nanoTime()))
      error
    }
  }

  private def isCurrent(result: Result): Boolean =
    result.error.isEmpty || nanoTime() - result.nanoTime < RetryNanos
}

private[store] object RootProbes {
  val MaxRoots = 1000
  val RetryNanos: Long = TimeUnit.MINUTES.toNanos(5)

  private type Key = (String, String)

  private final case class Result(error: String, nanoTime: Long)
}
