package klog.store

/** What a process knows about roots: for ever if they could be read, for minutes if not. */
class RootProbesSuite extends munit.FunSuite {

  /** Probes by a clock that stands still, and what they asked. */
  private final class Probes {
    var now = Long.MaxValue - 10 // The clock of Java may overflow.
    var asked = Seq.empty[String]
    private val probes = new RootProbes(() => now)

    def accessError(root: String, error: String): String =
      probes.accessError(root, "a client") { asked :+= root; error }
  }

  test("a root that could not be read is tried again later") {
    val probes = new Probes
    assertEquals(probes.accessError("a", "refused"), "refused")
    probes.now += RootProbes.RetryNanos - 1
    assertEquals(probes.accessError("a", ""), "refused")
    probes.now += 1
    assertEquals(probes.accessError("a", ""), "")
    assertEquals(probes.asked, Seq("a", "a"))
  }

  test("a root that could be read is not tried again") {
    val probes = new Probes
    assertEquals(probes.accessError("a", ""), "")
    probes.now += 1000 * RootProbes.RetryNanos
    assertEquals(probes.accessError("a", "refused"), "")
    assertEquals(probes.asked, Seq("a"))
  }

  test("of many roots those asked about least recently are forgotten") {
    val probes = new Probes
    val roots = (1 to RootProbes.MaxRoots).map(_.toString)
    roots.foreach(probes.accessError(_, ""))
    probes.accessError("1", "")
    probes.accessError("one more", "")
    probes.asked = Seq.empty
    (roots.drop(2) ++ Seq("1", "one more", "2")).foreach(probes.accessError(_, ""))
    assertEquals(probes.asked, Seq("2"))
  }
}
