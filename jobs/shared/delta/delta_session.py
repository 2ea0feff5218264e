"""Whether a Spark session has Delta, in a version that works with its Spark.

The rule: a session without Delta, or with a pair that does not work, is one error before anything
is written; it says what to give to Spark. `WORKING_PAIRS` are the pairs that klog's tests use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from klog.errors import KlogError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKING_PAIRS = {"4.2": "4.4.0"}
"""By version of Spark: the version of delta-spark."""
EXTENSION = ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
CATALOG = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
_OWN_ERROR = re.compile(r"klog\.errors\.\w+: (?P<message>.*)")
"""An error of klog's in a task of Python, as Spark quotes it."""
_RAISED = re.compile(
    r"\[USER_RAISED_EXCEPTION\] (?P<message>.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE
)
_MAX_CAUSES = 10
_FRAMES = 3
"""A class that lacks something is among the innermost frames."""
_ARTIFACT = re.compile(r"delta-spark_(?P<spark>\d+\.\d+)_\d+\.\d+-(?P<delta>[\w.-]+)\.jar")


def delta_package(spark_version: str) -> str:
    """Return the Maven coordinates of Delta for a Spark.

    Args:
        spark_version: Such as `4.2.0`.

    Raises:
        OptionError: No Delta is known to work with it.
    """
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in WORKING_PAIRS:
        raise OptionError(
            f"Spark {spark_version}: no Delta is known to work with it. Use {_pairs()}"
        )
    return f"io.delta:delta-spark_{minor}_2.13:{WORKING_PAIRS[minor]}"


def check_delta(spark: SparkSession) -> None:
    """Refuse a session that cannot write Delta tables.

    Args:
        spark: The session.

    Raises:
        OptionError: Delta is missing, of another Spark, or not configured.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise OptionError(
            "Spark Connect: jobs over Delta tables need a session in this process. Run the job by "
            "spark-submit, or where the server runs"
        )
    jar = _delta_jar(jvm)
    if jar is None:
        raise OptionError(
            f"this Spark session has no Delta: start it with --packages "
            f"{delta_package(spark.version)}, or with the jars of {_pairs()}"
        )
    artifact = _ARTIFACT.search(jar)
    if artifact is not None and not spark.version.startswith(f"{artifact['spark']}."):
        raise OptionError(
            f"delta-spark {artifact['delta']} for Spark {artifact['spark']} does not work with "
            f"Spark {spark.version}. Use {_pairs()}"
        )
    for name, value in (EXTENSION, CATALOG):
        if value not in (spark.conf.get(name, "") or ""):
            raise OptionError(f"{name}: Delta needs it. Start the session with {name}={value}")


@contextmanager
def delta_errors(topic: str) -> Iterator[None]:
    """Translate the errors of Spark and Delta into one sentence.

    Args:
        topic: The topic that is copied, for the error.

    Raises:
        KlogError: The translated error.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as exc:
        cause = exc.java_exception
        if _is_linkage_error(cause):
            raise KlogError(
                f"this Delta does not work with this Spark ({cause.toString()}). Use {_pairs()}"
            ) from exc
        raise KlogError(f"topic {topic}: {_sentence(cause, cause.toString())}") from exc
    except PySparkException as exc:
        origin = getattr(exc, "_origin", None)
        raise KlogError(f"topic {topic}: {_sentence(origin, str(exc))}") from exc


def _sentence(exception: Any, text: str) -> str:
    """Return what klog says in an error of Spark's or its causes, else what Spark says."""
    causes = [text]
    while exception is not None and len(causes) < _MAX_CAUSES:
        causes.append(exception.toString())
        exception = exception.getCause()
    for cause in causes:
        own = _OWN_ERROR.search(cause) or _RAISED.search(cause)
        if own is not None:
            return own["message"]
    return text.split("\n\tat ")[0].split("\n\nJVM")[0]


def _is_linkage_error(exception: Any) -> bool:
    """Return whether a class of Delta's does not find what it expects of Spark."""
    frames = exception.getStackTrace()
    if not any("delta" in frame.getClassName() for frame in list(frames)[:_FRAMES]):
        return False
    names = []
    kind = exception.getClass()
    while kind is not None:
        names.append(kind.getName())
        kind = kind.getSuperclass()
    return "java.lang.LinkageError" in names


def _delta_jar(jvm: Any) -> str | None:
    """Return where the class of Delta's log comes from; None if there is none."""
    from py4j.protocol import Py4JError

    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        delta_log = loader.loadClass("org.apache.spark.sql.delta.DeltaLog")
    except Py4JError:
        return None
    source = delta_log.getProtectionDomain().getCodeSource()
    return "" if source is None else str(source.getLocation().toString())


def _pairs() -> str:
    return " or ".join(
        f"delta-spark {delta} with Spark {spark}" for spark, delta in sorted(WORKING_PAIRS.items())
    )
