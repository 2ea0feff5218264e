"""Where klog's jar is: bundled, in the cache, or compiled now.

The rule: a jar is of the sources that this klog has, whose hash its name has. A wheel bundles one.
A clone has none, so the first use compiles the sources with the user's own PySpark and keeps the
jar in `${KLOG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/klog}/jars`, by klog's, Spark's and Scala's
version. It gets its name when it is complete.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

from klog.errors import KlogError
from klog.version import VERSION

PACKAGE = Path(__file__).parent.parent
SOURCES = PACKAGE / "jvm"
BUNDLED = PACKAGE / "jars"
JAR_PREFIX = "klog-spark_"
"""How the name of each jar of klog's begins."""


class JarError(KlogError):
    """There is no jar, and none can be compiled; the message says what to do."""


def jar_name() -> str:
    """Return the name of the jar of this klog's sources."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(f"{path.relative_to(SOURCES)}\n".encode())
        digest.update(path.read_bytes())
    return f"{JAR_PREFIX}2.13-{VERSION}-{digest.hexdigest()[:12]}.jar"


def source_files() -> list[Path]:
    """Return the sources and resources of the jar.

    Raises:
        JarError: klog lies in a zip, or has no sources.
    """
    scala, resources = SOURCES / "scala", SOURCES / "resources"
    paths = [*scala.rglob("*.scala"), *resources.rglob("*")]
    files = sorted(path for path in paths if path.is_file())
    if not files:
        raise JarError(
            f"klog at {PACKAGE} has no sources of its jar. Install klog with pip, or give Spark "
            "the jar of another klog of this version"
        )
    return files


def bundled_jar() -> Path | None:
    """Return the jar that came with klog, or that `make jar` made; None if there is none."""
    path = BUNDLED / jar_name()
    return path if path.is_file() else None


def cached_jar(spark_version: str, scala_version: str) -> Path:
    """Return where a jar compiled by this machine is, or will be.

    Args:
        spark_version: The version of PySpark that compiles it.
        scala_version: The version of its Scala compiler.
    """
    folder = f"spark-{spark_version}-scala-{scala_version}"
    return _cache() / "jars" / folder / jar_name()


def spark_home() -> Path | None:
    """Return the folder of the Spark that this Python starts; None without one."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home)
    spec = find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _cache() -> Path:
    folder = os.environ.get("KLOG_CACHE")
    if folder:
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "klog"
    except RuntimeError as exc:
        raise JarError(
            "klog's jar has no place: this user has no home. Set KLOG_CACHE to a folder that can "
            "be written"
        ) from exc
