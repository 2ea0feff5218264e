package klog.spark

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Why the JVM does not write, as the options say it; empty if it does. */
object WriteRefusal {
  def of(options: CaseInsensitiveStringMap): String = {
    val path = options.getOrDefault("path", "")
    if (!options.containsKey("topic")) "each row names its topic"
    else if (!path.forall(_ < 128) && !JavaPaths.areUtf8) JavaPaths.Refusal
    else TaskStores.writeRefusal(path, options)
  }
}
