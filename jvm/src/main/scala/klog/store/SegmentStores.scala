package klog.store

/** Which store the files of a root are in.
  *
  * @param client
  *   asks Hadoop's servers; made only for a root that is not on local disk
  */
final class SegmentStores(client: => HadoopClient) {
  private lazy val hadoop = client

  /** For roots on local disk alone. */
  def this() = this(HadoopClient.ofLocalDisk)

  /** Returns the store of a root: a path or a URL. */
  def of(root: String): WritableSegmentStore =
    if (SegmentStores.isLocal(SegmentStores.scheme(root))) LocalStore
    else HadoopStore.of(root, hadoop)

  /** Returns why the JVM does not read roots of a scheme; empty if it does. */
  def refusal(scheme: String): String =
    if (SegmentStores.isLocal(scheme)) ""
    else if (!HadoopStore.knows(scheme, hadoop.configuration))
      s"Hadoop has no file system for $scheme:// here"
    else hadoop.settings.unknown.fold("")(name => s"Hadoop has no setting for storage.$name")

  /** Returns why the JVM cannot read a root, as a file of it shows; empty if it can.
    *
    * The answer is remembered (`RootProbes`): a root that cannot be read is tried again some minutes later.
    */
  def accessError(root: String, path: String): String =
    if (SegmentStores.isLocal(SegmentStores.scheme(root))) ""
    else HadoopStore.accessError(root, path, hadoop)
}

object SegmentStores {

  /** Returns a root as its store spells it. */
  def spelled(root: String): String =
    if (scheme(root) == "file") "/" + root.stripPrefix("file:").replaceAll("^/+|/+$", "")
    else root

  /** Returns the scheme of a URL; "" for a path, which may have a colon. */
  def scheme(root: String): String =
    if (root.contains("://") || root.startsWith("file:") || root.startsWith("memory:"))
      root.takeWhile(_ != ':')
    else ""

  /** Returns the schemes of some roots, each once. */
  def schemes(roots: Iterable[String]): Seq[String] = roots.map(scheme).toSeq.distinct

  /** Returns whether a scheme is that of local disk. */
  def isLocal(scheme: String): Boolean = scheme.isEmpty || scheme == "file"

  /** Returns why the JVM does not write to roots of a scheme that it reads; empty if it does. */
  def writeRefusal(scheme: String): String =
    if (scheme == "webhdfs") "the Hadoop client that comes with Spark cannot write by webhdfs://" else ""
}
