package klog.spark

import java.util.concurrent.atomic.AtomicReference
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import klog.staging.WriteCounts

/** What the last micro-batch of a stream has written, which the stream's progress shows. */
final class SinkProgress {
  private val last = new AtomicReference[Option[WriteCounts]](None)

  def set(counts: WriteCounts): Unit = last.set(Some(counts))

  /** Returns the metrics once; none if nothing was written since, and if Python writes. */
  def metrics: JavaMap[String, String] =
    last.getAndSet(None).fold(Map.empty[String, String])(WriteMetrics.progress).asJava
}
