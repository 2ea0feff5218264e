// The JVM shim: `make scala` runs sbt with PySpark's jars. The jar itself is made by `make jar`, which
// needs neither sbt nor a network: the Scala compiler is among PySpark's jars.

ThisBuild / scalaVersion := "2.13.18"

val sparkJars = file(sys.env.getOrElse("SPARK_JARS", sys.error("set SPARK_JARS, or run `make scala`")))

lazy val shim = (project in file("jvm")).settings(
  name := "klog-spark",
  scalacOptions ++= Seq("-release", "17", "-deprecation", "-feature", "-unchecked", "-Xlint", "-Werror"),
  // Spark and Hadoop are there at run time, with all that the shim uses.
  Compile / unmanagedJars ++= (sparkJars * "*.jar").classpath,
  Test / unmanagedJars ++= (sparkJars * "*.jar").classpath,
  libraryDependencies += "org.scalameta" %% "munit" % "1.2.4" % Test,
  Test / fork := true,
  // Golden files name segments relative to the project's folder.
  Test / baseDirectory := (ThisBuild / baseDirectory).value,
  Test / parallelExecution := false
)
