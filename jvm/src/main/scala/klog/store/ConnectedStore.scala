package klog.store

/** A store whose files hold the connection that they are on: it stays open as long as they do.
  *
  * @param take
  *   takes the connection for a file
  */
private[store] final class ConnectedStore(take: () => Connections#Lease) extends WritableSegmentStore {

  override def open(path: String, sizeBytes: Long): SegmentFile =
    held((store, lease) => new HeldFile(store.open(path, sizeBytes), lease))

  override def create(path: String): NewFile =
    held((store, lease) => new HeldNewFile(store.create(path), lease))

  private def held[T](file: (HadoopStore, Connections#Lease) => T): T = {
    val lease = take()
    try file(new HadoopStore(lease.fileSystem), lease)
    catch {
      case exc: Throwable =>
        lease.release()
        throw exc
    }
  }
}

private final class HeldFile(file: SegmentFile, lease: Connections#Lease) extends SegmentFile {
  override def sizeBytes: Long = file.sizeBytes
  override def identity: String = file.identity
  override def stamp: String = file.stamp
  override def requests: Long = file.requests
  override def read(position: Long, into: Array[Byte], at: Int, size: Int): Int =
    file.read(position, into, at, size)

  override def close(): Unit =
    try file.close()
    finally lease.release()
}

/** Its connection is free when it is complete, or removed. */
private final class HeldNewFile(file: NewFile, lease: Connections#Lease) extends NewFile {
  override def write(bytes: Array[Byte]): Unit = file.write(bytes)

  override def complete(): Unit = {
    file.complete()
    lease.release()
  }

  override def close(): Unit =
    try file.close()
    finally lease.release()
}
