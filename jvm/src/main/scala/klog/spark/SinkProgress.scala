package klog.spark

import java.util.concurrent.atomic.AtomicReference
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import klog.staging.WriteCounts

/** What the last micro-batch of a stream has written, and with which engine: its progress shows it. */
final class SinkProgress {
  private val last = new AtomicReference(Map.empty[String, String])

  def setJvm(counts: WriteCounts): Unit = last.set(Engine.metrics("") ++ WriteMetrics.progress(counts))

  /** Python's tasks do not say what they have written. */
  def setPython(reason: String): Unit = last.set(Engine.metrics(reason))

  /** Returns the metrics once; none if nothing was written since. */
  def metrics: JavaMap[String, String] = last.getAndSet(Map.empty).asJava
}
