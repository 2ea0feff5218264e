package klog.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** A number that Spark's UI shows: the sum over tasks. Spark makes each metric by its class name, without
  * arguments.
  */
abstract class SumMetric(override val name: String, override val description: String) extends CustomSumMetric

/** A time in nanoseconds, shown in milliseconds. */
abstract class TimeMetric(name: String, description: String) extends SumMetric(name, description) {
  override def aggregateTaskMetrics(taskMetrics: Array[Long]): String = s"${taskMetrics.sum / 1000000} ms"
}

/** Metrics, and where each is in what a task or a write counts. */
final class Metrics[Counts](of: (CustomMetric, Counts => Long)*) {
  val all: Array[CustomMetric] = of.map(_._1).toArray

  /** Returns what is reported of them. */
  def values(counts: Counts): Array[CustomTaskMetric] =
    of.map { case (metric, value) => MetricValue(metric.name, value(counts)) }.toArray
}

/** A value of a metric. */
final case class MetricValue(override val name: String, override val value: Long) extends CustomTaskMetric
