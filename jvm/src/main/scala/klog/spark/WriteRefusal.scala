package klog.spark

import java.io.File

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import klog.store.SegmentStores

/** Why the JVM does not write, as the options say it; empty if it does. */
object WriteRefusal {
  def of(options: CaseInsensitiveStringMap): String = {
    val path = options.getOrDefault("path", "")
    if (!options.containsKey("topic")) "each row names its topic"
    else if (!absolute(path).forall(_ < 128) && !JavaPaths.areUtf8) JavaPaths.Refusal
    else TaskStores.writeRefusal(path, options)
  }

  /** Returns a path with the folders above it; Java shows those that it cannot spell as U+FFFD. */
  private def absolute(path: String): String =
    if (SegmentStores.scheme(path).isEmpty) new File(path).getAbsolutePath else path
}
