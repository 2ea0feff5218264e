package klog.spark

/** Which paths this Java can spell: it takes the encoding of file names from the locale. */
object JavaPaths {
  val Refusal = "this Java has no names for paths that are not ASCII (set LC_ALL=C.UTF-8)"

  /** Whether it can spell all paths. */
  val areUtf8: Boolean =
    System.getProperty("sun.jnu.encoding", "").replace("-", "").equalsIgnoreCase("UTF8")
}
