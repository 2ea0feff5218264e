"""Whether a Spark session has Delta, in a version that works with its Spark.

The rule: a session without Delta, or with a pair that does not work, is one error before anything
is written; it says what to give to Spark. `WORKING_PAIRS` are the pairs that klog's tests use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from klog.errors import KlogError, OptionError, StoreError, StoreRefusedError, error_of_class
from klog.raised_errors import raised_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKING_PAIRS = {"4.2": "4.4.0"}
"""By version of Spark: the version of delta-spark."""
EXTENSION = ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
CATALOG = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
_MESSAGE = re.compile(r".*?SQLSTATE: \w+", re.DOTALL)
"""What Spark says, without the plan of the query that may follow."""
_TRACE, _JVM = "\n\tat ", "\n\nJVM"
_MAX_CAUSES = 10
_UNANSWERED = re.compile(
    r"[\w.]*\.(?:ConnectException|SocketException|SocketTimeoutException|NoRouteToHostException"
    r"|UnknownHostException|ConnectTimeoutException|ApiCall(?:Attempt)?TimeoutException)\b"
)
"""Causes of Java that are about a connection to the store of a table."""
_REFUSED = re.compile(r"[\w.]*\.(?:AccessDeniedException|AccessControlException|NoAuth\w+)\b")
_FRAMES = 3
"""A class that lacks something is among the innermost frames."""
_ARTIFACT = re.compile(r"delta-spark_(?:(?P<spark>\d+\.\d+)_)?\d+\.\d+-(?P<delta>[\w.-]+)\.jar")
"""Such as `delta-spark_4.2_2.13-4.4.0.jar`; older ones do not name their Spark."""


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
    check_pair(spark.version, jar)
    for name, value in (EXTENSION, CATALOG):
        if value not in (spark.conf.get(name, "") or ""):
            raise OptionError(f"{name}: Delta needs it. Start the session with {name}={value}")


def check_pair(spark_version: str, jar: str) -> None:
    """Refuse a Delta that was made for another Spark.

    Args:
        spark_version: Such as `4.2.0`.
        jar: The path of Delta's jar. A name that does not say the versions, as where a vendor has
            Delta in a jar of its own, passes.

    Raises:
        OptionError: The name says another Spark, or a Delta of before its names said that.
    """
    artifact = _ARTIFACT.search(jar)
    if artifact is None or spark_version.startswith(f"{artifact['spark']}."):
        return
    made_for = f" for Spark {artifact['spark']}" if artifact["spark"] else ""
    raise OptionError(
        f"delta-spark {artifact['delta']}{made_for} does not work with Spark {spark_version}. "
        f"Use {_pairs()}"
    )


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of what PySpark raises for an error of the JVM."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return Py4JJavaError, PySparkException


@contextmanager
def delta_errors(subject: str) -> Iterator[None]:
    """Translate the errors of Spark and Delta into one sentence.

    Args:
        subject: What the error begins with, such as the topic that is copied.

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
        raise _translated(subject, cause, cause.toString()) from exc
    except PySparkException as exc:
        origin = getattr(exc, "_origin", None)
        raise _translated(subject, origin, str(exc)) from exc


def _translated(subject: str, exception: Any, text: str) -> KlogError:
    """Return the error that klog has raised in a task, else one with what Spark says."""
    causes = [text]
    while exception is not None and len(causes) < _MAX_CAUSES:
        causes.append(exception.toString())
        exception = exception.getCause()
    for cause in causes:
        own = raised_error(cause)
        if own is not None:
            error_class, message = own
            return error_of_class(error_class, f"{subject}: {message}")
    text = text.split(_TRACE)[0].split(_JVM)[0]
    spark_message = _MESSAGE.match(text)
    message = f"{subject}: {spark_message[0] if spark_message else text}"
    if any(_REFUSED.match(cause) for cause in causes):
        return StoreRefusedError(message)
    return StoreError(message) if any(map(_UNANSWERED.match, causes)) else KlogError(message)


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
