package klog.store

/** An open file of a store: its bytes stay readable while it is open. */
trait SegmentFile extends AutoCloseable {

  /** The size in bytes when it was opened. */
  def sizeBytes: Long

  /** Which file it is, in the words of its store; empty if the store does not say it. */
  def identity: String

  /** Changes when bytes of the file do; empty if the store does not say it. */
  def stamp: String

  /** How many requests of the store the reads have made so far. */
  def requests: Long

  /** Reads bytes at a position, fewer only at the end of the file.
    *
    * @return
    *   how many bytes were read
    */
  def read(position: Long, into: Array[Byte], at: Int, size: Int): Int
}

/** Files of one file system. */
trait SegmentStore {

  /** Opens a file.
    *
    * @param path
    *   its path, as klog's stores spell paths
    * @param sizeBytes
    *   its size, if a commit says it, else -1; a store may believe it
    * @throws java.io.FileNotFoundException
    *   if there is no such file
    */
  def open(path: String, sizeBytes: Long): SegmentFile
}

/** A file system that segments can be staged on. */
trait WritableSegmentStore extends SegmentStore {

  /** Begins a file, which replaces one that may exist. Missing directories are made.
    *
    * @param path
    *   its path, as klog's stores spell paths
    */
  def create(path: String): NewFile
}

/** A file that is being written. It has its name when it is complete and durable, not before. */
trait NewFile extends AutoCloseable {

  /** Writes the next bytes. */
  def write(bytes: Array[Byte]): Unit

  /** Gives the file its name.
    *
    * @throws java.io.IOException
    *   it may have its name all the same
    */
  def complete(): Unit

  /** Removes the file if it is not complete. */
  override def close(): Unit
}
