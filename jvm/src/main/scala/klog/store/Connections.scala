package klog.store

import java.net.URI
import java.util.LinkedHashMap
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileSystem

/** The connections of this process to servers: Hadoop's file systems, by URL and client.
  *
  * The rule: those that were used last stay open, as tasks come again. One that is crowded out is closed when the
  * last file on it is: to close it earlier would break a running task. To forget it would not do, because Hadoop
  * keeps each file system until it is closed. Session tokens change, and each makes another connection.
  *
  * @param maxOpen
  *   how many stay open without a file
  */
private[store] final class Connections(maxOpen: Int) {
  import Connections._

  private val kept = new LinkedHashMap[Key, Connection](16, 0.75f, true)

  /** Returns whether there is a connection to a server already. */
  def has(key: Key): Boolean = synchronized(kept.containsKey(key))

  /** Returns a connection. The caller has to release it.
    *
    * @param connect
    *   makes it, if there is none
    */
  def take(key: Key)(connect: => FileSystem): Lease = {
    val connection = synchronized {
      val connection = kept.computeIfAbsent(key, new Connection(_))
      connection.users += 1
      connection
    }
    val lease = new Lease(connection)
    try {
      connection.open(connect)
      closeEldest()
      lease
    } catch {
      case exc: Throwable =>
        lease.drop()
        lease.release()
        throw exc
    }
  }

  private def closeEldest(): Unit = {
    val eldest = synchronized {
      Option.when(kept.size > maxOpen)(kept.values.iterator.next())
    }
    eldest.foreach(drop)
  }

  private def drop(connection: Connection): Unit = closeIf {
    connection.isDropped = true
    kept.remove(connection.key, connection)
    connection
  }

  private def release(connection: Connection): Unit = closeIf {
    connection.users -= 1
    connection
  }

  /** Changes the state of a connection, and closes it if nobody can use it any more. */
  private def closeIf(changed: => Connection): Unit = {
    val unused = synchronized(
      Some(changed).filter(connection => connection.isDropped && connection.users == 0)
    )
    unused.foreach(_.close())
  }

  /** The use of a connection by one caller. */
  final class Lease(connection: Connection) {
    private val isHeld = new AtomicBoolean(true)

    def fileSystem: FileSystem = connection.fileSystem

    /** Ends the use. Later calls do nothing. */
    def release(): Unit = if (isHeld.getAndSet(false)) Connections.this.release(connection)

    /** Lets nobody else take the connection. */
    def drop(): Unit = Connections.this.drop(connection)
  }
}

private[store] object Connections {

  /** A server, and the id of a client. */
  type Key = (URI, String)

  /** A connection; `users` and `isDropped` are guarded by the connections, and the file system by itself. */
  private final class Connection(val key: Key) {
    var users = 0
    var isDropped = false
    private var opened: Option[FileSystem] = None

    def open(connect: => FileSystem): Unit = synchronized {
      if (opened.isEmpty) opened = Some(connect)
    }

    def fileSystem: FileSystem = synchronized(opened.get)

    /** A task that ends last does not fail because of this. */
    def close(): Unit = synchronized {
      try opened.foreach(_.close())
      catch { case NonFatal(_) => }
      opened = None
    }
  }
}
