"""Put klog's jar into a Spark session that is about to start.

The rule: nothing of the session is replaced, and a session without the jar works as before: Python
reads. So whatever is in the way is one warning that says what to do instead; there is none if
the session has the jar already.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klog.spark_jar.jar_compiler import find_jar
from klog.spark_jar.jar_files import JAR_PREFIX, JarError, spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = "spark.jars"
_JARS_LINE = re.compile(r"^[ \t]*spark\.jars[ \t]*[=: \t][ \t]*(.*)$", re.MULTILINE)
"""A line of `spark-defaults.conf`, whose form is that of Java's properties; the last one counts."""
_SUBMIT_JARS = re.compile(r"--jars\b|\bspark\.jars=|--properties-file\b")
"""Arguments of spark-submit that win over the jars of a builder."""


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Return the builder with klog's jar among its jars.

    Args:
        builder: The builder of the session.
    """
    if _has_jar():
        return builder
    obstacle = _obstacle(builder)
    if obstacle is None:
        try:
            jar = find_jar(_announce)
        except JarError as exc:
            obstacle = str(exc)
        else:
            return builder.config(JARS, _joined(_present_jars(builder), str(jar)))
    words = "klog.configure adds no jar, and without one Python reads, not the JVM"
    warnings.warn(f"{words}: {obstacle}", stacklevel=3)
    return builder


def _has_jar() -> bool:
    """Return whether it is known that Spark has been started with klog's jar."""
    words = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    return JAR_PREFIX in words or any(JAR_PREFIX in value for _, value in _started_conf())


def _started_conf() -> list[tuple[str, str]]:
    """Return the conf of the Spark that runs, or that spark-submit has started; [] without one."""
    core = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    context: Any = getattr(core, "SparkContext", None)
    if _is_running():
        return list(context._active_spark_context.getConf().getAll())
    if context is None or not os.environ.get("PYSPARK_GATEWAY_PORT"):
        return []
    context._ensure_initialized()  # It connects to the JVM, whose properties the conf has.
    return list(sys.modules["pyspark.conf"].SparkConf().getAll())


def _obstacle(builder: SparkSession.Builder) -> str | None:
    """Return why the jar cannot be given to the session here, and how else; None if it can."""
    options = _options(builder)
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return "a Databricks cluster gets the jar (klog jar) as a library of the cluster"
    if "spark.remote" in options or os.environ.get("SPARK_REMOTE"):
        return "over Spark Connect the server is started with --jars $(klog jar)"
    if os.environ.get("PYSPARK_GATEWAY_PORT"):
        return "spark-submit has started this session: give it --jars $(klog jar)"
    if _SUBMIT_JARS.search(os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
        return (
            "PYSPARK_SUBMIT_ARGS has jars of its own: add the path that klog jar prints to --jars"
        )
    if _is_running():
        return "a session runs already: stop it first, or start it with --jars $(klog jar)"
    return None


def _is_running() -> bool:
    core = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    context = getattr(core, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


def _present_jars(builder: SparkSession.Builder) -> str:
    """Return the jars of the session without klog: the builder's, else those of the defaults."""
    jars = _options(builder).get(JARS)
    return jars if jars is not None else _default_jars()


def _default_jars() -> str:
    """Return what `spark-defaults.conf` says, which a setting of the builder would replace."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{spark_home()}/conf"
    path = Path(folder) / "spark-defaults.conf"
    if not path.is_file():
        return ""
    text = re.sub(r"\\\n\s*", "", path.read_text())  # A line may go on after a backslash.
    return next((match[1].strip() for match in reversed([*_JARS_LINE.finditer(text)])), "")


def _options(builder: SparkSession.Builder) -> dict[str, str]:
    return dict(getattr(builder, "_options", {}))


def _joined(jars: str, jar: str) -> str:
    present = [entry.strip() for entry in jars.split(",") if entry.strip()]
    return ",".join(present if jar in present else [*present, jar])


def _announce(text: str) -> None:
    sys.stderr.write(f"{text}\n")
