package klog.spark

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

/** On a Spark that klog's jar does not fit, Python reads, and one warning says so. */
class SteppingAsideSuite extends munit.FunSuite {
  import SteppingAsideSuite._

  private val isVersionTried = Seq(
    "4.2.0" -> true,
    "4.2.1" -> true,
    "4.3.0-SNAPSHOT" -> true,
    "4.1.2" -> false,
    "4.20.0" -> false,
    "4.4.0" -> false,
    "5.4.2" -> false,
    "" -> false
  )

  for ((version, isTried) <- isVersionTried)
    test(s"Spark '$version' ${if (isTried) "is" else "is not"} tried") {
      assertEquals(SparkVersions.isTried(version), isTried)
    }

  test("a property of the JVM forces another version") {
    assert(forced("true")(SparkVersions.isTried("5.0.0")))
    assert(!forced("false")(SparkVersions.isTried("5.0.0")))
    assert(forced("false")(SparkVersions.isTried("4.2.0")))
  }

  test("the warning names the version, who reads, and what forces the jar") {
    val warning = SparkVersions.warning("5.0.0")
    for (part <- Seq("4.2 and 4.3", "this is 5.0.0", "Python reads", "-Dklog.jvm.force=true"))
      assert(warning.contains(part), warning)
  }

  test("klog fits the Spark that it is compiled with") {
    assertEquals(installed(new KlogExtensions), (2, Nil))
  }

  test("another version gets nothing, and nothing of it is looked at") {
    def probe(): Unit = fail("it was probed")
    assertEquals(
      installed(new KlogExtensions("5.0.0", () => probe())),
      (0, Seq(SparkVersions.warning("5.0.0")))
    )
  }

  for {
    missing <- Seq(
      new NoSuchMethodError("void a()"),
      new NoClassDefFoundError("b/C"),
      new NoSuchFieldException("d"),
      new ClassNotFoundException("b.C")
    )
  }
    test(s"a Spark that lacks something gets nothing: $missing") {
      val (count, warnings) = installed(new KlogExtensions("4.2.0", () => throw missing))
      assertEquals(count, 0)
      assertEquals(
        warnings,
        Seq(s"klog's jar does not fit this Spark, so Python reads the format klog: $missing")
      )
    }

  test("a bug of a probe is not taken for another Spark") {
    def probe(): Unit = throw new IllegalStateException("a bug")
    intercept[IllegalStateException](installed(new KlogExtensions("4.2.0", () => probe())))
  }

  test("a plan that the rule cannot look at stays unchanged, and later ones, with one warning") {
    val (isBroken, plan) = (new AtomicBoolean, new UnknownPlan)
    val warnings = LoggedWarnings.of(classOf[KlogRule]) {
      for (_ <- 1 to 2; rule = new KlogRule(null, isBroken); _ <- 1 to 2) assert(rule(plan) eq plan)
    }
    val reason = "java.lang.NoSuchMethodError: void children()"
    assertEquals(
      warnings,
      Seq(s"klog's jar does not fit this Spark, so Python reads the format klog: $reason")
    )
    assertEquals(plan.lookCount, 1)
  }

  test("the rules of all sessions share what they have met") {
    val plan = new UnknownPlan
    try {
      val warnings = LoggedWarnings.of(classOf[KlogRule]) {
        for (_ <- 1 to 2) assert(new KlogRule(null)(plan) eq plan)
      }
      assertEquals((warnings.size, plan.lookCount), (1, 1))
    } finally KlogRule.isBroken.set(false)
  }
}

object SteppingAsideSuite {

  /** Returns how much klog adds to a session, and its warnings. */
  private def installed(klog: KlogExtensions): (Int, Seq[String]) = {
    val extensions = new Extensions
    val warnings = LoggedWarnings.of(classOf[KlogExtensions])(klog(extensions))
    (extensions.count, warnings)
  }

  private def forced[T](value: String)(work: => T): T = {
    System.setProperty(SparkVersions.Force, value)
    try work
    finally { val _ = System.clearProperty(SparkVersions.Force) }
  }

  /** Counts what is added to a session. */
  private final class Extensions extends SparkSessionExtensions {
    var count = 0
    override def injectPostHocResolutionRule(builder: RuleBuilder): Unit = count += 1
    override def injectPlannerStrategy(builder: StrategyBuilder): Unit = count += 1
  }

  /** A plan of another Spark: what the rule calls is not there. */
  private final class UnknownPlan extends LeafNode {
    var lookCount = 0
    override def resolveOperatorsUp(rule: PartialFunction[LogicalPlan, LogicalPlan]): LogicalPlan = {
      lookCount += 1
      throw new NoSuchMethodError("void children()")
    }
    override def output: Seq[Attribute] = Nil
    override def productArity: Int = 0
    override def productElement(number: Int): Any = throw new IndexOutOfBoundsException
    override def canEqual(other: Any): Boolean = other.isInstanceOf[UnknownPlan]
  }
}
