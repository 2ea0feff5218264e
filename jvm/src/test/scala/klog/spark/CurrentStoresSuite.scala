package klog.spark

import java.util.Collections

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The tasks of micro-batches share one broadcast until the session's keys change. */
class CurrentStoresSuite extends LocalSessionSuite {
  private val noOptions = new CaseInsensitiveStringMap(Collections.emptyMap())

  test("a key that the session replaces is sent to the next tasks") {
    session.conf.set("fs.s3a.session.token", "old")
    val stores = new CurrentStores
    val first = stores.of(Seq("s3"), noOptions)
    session.conf.set("spark.sql.shuffle.partitions", "7")
    assert(stores.of(Seq("s3"), noOptions) eq first)
    session.conf.set("fs.s3a.session.token", "new")
    val second = stores.of(Seq("s3"), noOptions)
    assertEquals(
      Seq(first, second).map(_.configuration.get.value.value.get("fs.s3a.session.token")),
      Seq("old", "new")
    )
    assertNotEquals(first.clientId, second.clientId)
    assert(!second.clientId.contains("new"))
  }

  test("roots on local disk need no configuration") {
    session
    assertEquals(new CurrentStores().of(Seq("", "file"), noOptions).configuration, None)
  }
}
