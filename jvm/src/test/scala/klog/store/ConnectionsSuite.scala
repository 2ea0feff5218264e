package klog.store

import java.net.URI
import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.RawLocalFileSystem

/** The connections that were used last stay open, and one that a file is on is not closed. */
class ConnectionsSuite extends munit.FunSuite {
  import FailingFileSystem.callsOf
  import HadoopStore.MaxConnections

  private def storeOf(bucket: String, token: Int): WritableSegmentStore = {
    val configuration = new Configuration
    configuration.set("fs.s3a.impl", classOf[FailingFileSystem].getName)
    HadoopStore.of(
      s"s3://$bucket/root",
      HadoopClient.of(configuration, StorageSettings(Map("session_token" -> token.toString)))
    )
  }

  private def open(bucket: String, token: Int): SegmentFile =
    storeOf(bucket, token).open(s"s3://$bucket/root/a.log", 1)

  private def read(bucket: String, tokens: Range): Unit = for (token <- tokens) open(bucket, token).close()

  private def connectionsOf(bucket: String): Int = callsOf(bucket)._1
  private def closingsOf(bucket: String): Int = callsOf(bucket)._3

  test("of many tokens the connections that were used last stay open") {
    read("tokens", 1 to MaxConnections)
    read("tokens", 1 to 1)
    assertEquals((connectionsOf("tokens"), closingsOf("tokens")), (MaxConnections, 0))
    read("tokens", MaxConnections + 1 to MaxConnections + 3)
    assertEquals((connectionsOf("tokens"), closingsOf("tokens")), (MaxConnections + 3, 3))
    read("tokens", 1 to 1)
    assertEquals(connectionsOf("tokens"), MaxConnections + 3)
  }

  test("a connection that is crowded out is closed with the last file on it") {
    val files = Seq.fill(2)(open("busy", 0))
    read("busy", 1 to MaxConnections)
    assertEquals(closingsOf("busy"), 0)
    assertEquals(files.map(_.read(0, new Array[Byte](1), 0, 1)), Seq(1, 1))
    files.head.close()
    files.head.close()
    assertEquals(closingsOf("busy"), 0)
    files.last.close()
    assertEquals(closingsOf("busy"), 1)
  }

  test("a store whose connection was closed connects again") {
    val store = storeOf("again", 0)
    for (connections <- Seq(1, MaxConnections + 2)) {
      store.open("s3://again/root/a.log", 1).close()
      assertEquals(connectionsOf("again"), connections)
      read("again", 1 to MaxConnections)
    }
  }

  test("a file that cannot be created holds no connection") {
    intercept[UnsupportedOperationException](storeOf("refused", 0).create("s3://refused/root/a.log"))
    read("refused", 1 to MaxConnections)
    assertEquals(closingsOf("refused"), 1)
  }

  private val key = (new URI("file:///"), "a client")
  private val folder = Files.createTempDirectory("klog")

  /** Returns a connection that nobody else gets, a store on it, and a file of that. */
  private def writing(name: String): (CountedFileSystem, NewFile, Path) = {
    val (connections, fileSystem) = (new Connections(0), new CountedFileSystem)
    val path = folder.resolve(name)
    val store = new ConnectedStore(() => connections.take(key)(fileSystem))
    (fileSystem, store.create(path.toString), path)
  }

  test("a file that is written holds its connection until it is complete") {
    val (fileSystem, file, path) = writing("complete")
    file.write(Array[Byte](7))
    assertEquals(fileSystem.closings, 0)
    file.complete()
    assertEquals(fileSystem.closings, 1)
    assertEquals(Files.readAllBytes(path).toSeq, Seq[Byte](7))
  }

  test("a file that is written holds its connection until it is removed") {
    val (fileSystem, file, path) = writing("removed")
    file.write(Array[Byte](7))
    file.close()
    assertEquals(fileSystem.closings, 1)
    assert(!Files.exists(path))
  }

  private final class CountedFileSystem extends RawLocalFileSystem {
    var closings = 0
    initialize(key._1, new Configuration)

    override def getScheme: String = key._1.getScheme
    override def close(): Unit = {
      closings += 1
      super.close()
    }
  }
}
