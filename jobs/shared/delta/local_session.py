"""The Spark session of a `klog` verb that works on Delta tables.

The rule: Spark starts in the command's own process, with klog's jar and with Delta. Delta's jars
come from `--conf spark.jars` or from Spark's folder if they are there, else from Maven Central. A
program of spark-submit gives its session itself. The command's output is its report alone: what the
JVM prints, as it does when its code cache is full, goes with the errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klog.errors import KlogError
from klog.jobs.shared.delta.delta_session import CATALOG, EXTENSION, delta_package
from klog.spark_jar.configured_session import configure
from klog.spark_jar.jar_files import spark_home

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_DELTA = "delta-spark"
_PACKAGES = "spark.jars.packages"


def with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Set what Delta wants of a session that is about to start.

    Args:
        builder: The builder of the session.
    """
    return builder.config(*EXTENSION).config(*CATALOG)


@contextmanager
def delta_session(settings: Sequence[tuple[str, str]], name: str) -> Iterator[SparkSession]:
    """Start a session, and stop it at the end.

    Args:
        settings: Settings of Spark, which win over those made here.
        name: The name of the application.

    Raises:
        KlogError: Spark does not start.
    """
    import pyspark
    from pyspark.sql import SparkSession

    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)
    builder = with_delta(SparkSession.builder.appName(name))
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    if not _has_delta(settings, spark_home()):
        builder = builder.config(_PACKAGES, delta_package(pyspark.__version__))
    for key, value in settings:
        builder = builder.config(key, value)
    try:
        with _output_to_errors():
            spark = configure(builder).getOrCreate()
    except Exception as exc:  # PySpark raises several kinds.
        raise KlogError(
            "Spark did not start: its own messages are above. Without access to Maven Central give "
            f"the jars of Delta, as in --conf spark.jars=/jars/delta-spark.jar,... ({exc})"
        ) from exc
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _output_to_errors() -> Iterator[None]:
    """Let processes that are started in this block write their output with the errors."""
    output, errors = 1, 2
    sys.stdout.flush()
    saved = os.dup(output)
    try:
        os.dup2(errors, output)
        yield
    finally:
        os.dup2(saved, output)
        os.close(saved)


def _has_delta(settings: Sequence[tuple[str, str]], home: Path | None) -> bool:
    named = any(_DELTA in value for key, value in settings if key.startswith("spark.jars"))
    return named or (home is not None and any((home / "jars").glob(f"{_DELTA}*.jar")))
