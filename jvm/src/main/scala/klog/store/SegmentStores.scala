package klog.store

import org.apache.hadoop.conf.Configuration

/** Which store the files of a root are in.
  *
  * @param configuration
  *   Hadoop's; asked for only by a root that is not on local disk
  */
final class SegmentStores(configuration: => Configuration, settings: StorageSettings) {
  private lazy val client = new HadoopClient(configuration, settings)

  /** For roots on local disk alone. */
  def this() = this(new Configuration(false), StorageSettings(Map.empty))

  /** Returns the store of a root: a path or a URL. */
  def of(root: String): WritableSegmentStore =
    if (SegmentStores.isLocal(SegmentStores.scheme(root))) LocalStore
    else HadoopStore.of(root, client)

  /** Returns why the JVM does not read roots of a scheme; empty if it does. */
  def refusal(scheme: String): String =
    if (SegmentStores.isLocal(scheme)) ""
    else if (!HadoopStore.knows(scheme, client.configuration))
      s"Hadoop has no file system for $scheme:// here"
    else settings.unknown.fold("")(name => s"Hadoop has no setting for storage.$name")

  /** Returns why the JVM cannot read a root, as a file of it shows; empty if it can.
    *
    * The answer is remembered (`RootProbes`): a root that cannot be read is tried again some minutes later.
    */
  def accessError(root: String, path: String): String =
    if (SegmentStores.isLocal(SegmentStores.scheme(root))) ""
    else HadoopStore.accessError(root, path, client)
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

  /** Returns whether a scheme is that of local disk. */
  def isLocal(scheme: String): Boolean = scheme.isEmpty || scheme == "file"

  /** Returns why the JVM does not write to roots of a scheme that it reads; empty if it does. */
  def writeRefusal(scheme: String): String =
    if (scheme == "webhdfs") "the Hadoop client that comes with Spark cannot write by webhdfs://" else ""
}
