"""Fetch the jars of a real component with pip and Java alone.

The rule: a folder of jars is complete or absent. Ivy, one of PySpark's own jars, downloads into a
temporary folder next to the final one. When every module has arrived, the completion marker is
written and the folder is renamed into place. A second call finds the marker and starts nothing; a
marker that lists other modules counts as missing. The folders lie under
`${KLOG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/klog}/jars`.

    python tools/jars.py kafka        # prints the folder
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

MARKER = ".complete"
FETCH_TIMEOUT_SECONDS = 900


class Module(NamedTuple):
    """One Ivy module; its dependencies come with it, unless it comes alone."""

    organisation: str
    name: str
    version: str
    alone: bool = False


COMPONENTS: dict[str, tuple[Module, ...]] = {
    "kafka": (
        Module("org.apache.kafka", "kafka_2.13", "4.2.0"),
        Module("org.apache.kafka", "kafka-tools", "4.2.0"),
        # Kafka's jars bring no logger: without one a broker that fails says nothing.
        Module("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    # Older brokers, which write the golden vectors: 2.8 still knows formats v0 and v1 and brings
    # ZooKeeper with it; 3.9 is the last before 4.
    "kafka-3.9": (
        Module("org.apache.kafka", "kafka_2.13", "3.9.1"),
        Module("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    "kafka-2.8": (
        Module("org.apache.kafka", "kafka_2.13", "2.8.2"),
        Module("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
    # What Spark's own sinks need, for comparisons with klog's.
    "spark-kafka": (
        Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
        # Only for Kerberos; not every mirror has each version.
        Module("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
        Module("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
        Module("org.apache.commons", "commons-pool2", "2.12.1", alone=True),
    ),
    "delta": (Module("io.delta", "delta-spark_4.2_2.13", "4.4.0"),),
    # `s3a://` of Spark 4.2.0, whose Hadoop is 3.5.0. AWS's own bundle would be half a gigabyte.
    "hadoop-aws": (
        Module("org.apache.hadoop", "hadoop-aws", "3.5.0", alone=True),
        Module("software.amazon.awssdk", "s3", "2.35.4"),
        Module("software.amazon.awssdk", "s3-transfer-manager", "2.35.4"),
        Module("software.amazon.awssdk", "sts", "2.35.4"),
        Module("software.amazon.awssdk", "apache-client", "2.35.4"),
        Module(
            "software.amazon.s3.analyticsaccelerator",
            "analyticsaccelerator-s3",
            "1.3.0",
            alone=True,
        ),
    ),
    "sbt": (Module("org.scala-sbt", "sbt-launch", "1.12.14", alone=True),),
    # The stores that tests write to: an S3 server over a folder, and a NameNode with its DataNode.
    "s3proxy": (Module("org.gaul", "s3proxy", "4.1.0"),),
    "hadoop": (
        Module("org.apache.hadoop", "hadoop-common", "3.5.0"),
        Module("org.apache.hadoop", "hadoop-hdfs", "3.5.0"),
        Module("org.apache.hadoop", "hadoop-hdfs-client", "3.5.0"),
    ),
}


class JarsError(Exception):
    """Jars could not be fetched; the message says what to do next."""


def jars(name: str) -> Path:
    """Return the folder that holds every jar of `name`, fetching them the first time.

    Raises JarsError for an unknown name, without Java or PySpark, and when Ivy fails.
    """
    if name not in COMPONENTS:
        raise JarsError(f"no component {name!r}; known: {', '.join(sorted(COMPONENTS))}")
    modules = COMPONENTS[name]
    folder = cache() / "jars" / f"{name}-{modules[0].version}"
    if not _is_complete(folder, modules):
        _fetch(modules, folder)
    return folder


def java() -> Path:
    """Return the `java` to run: JAVA_HOME's, else the one on PATH; JarsError without either."""
    home = os.environ.get("JAVA_HOME")
    if home:
        candidate = Path(home) / "bin" / "java"
        if not candidate.exists():
            raise JarsError(f"JAVA_HOME is {home}, which has no bin/java: run `make env`")
        return candidate
    path = shutil.which("java")
    if path is None:
        raise JarsError("no Java: JAVA_HOME is not set and java is not on PATH: run `make env`")
    return Path(path)


def cache() -> Path:
    """Return the folder of files that are fetched once."""
    folder = os.environ.get("KLOG_CACHE")
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "klog"


def _listing(modules: tuple[Module, ...]) -> str:
    return "".join(f"{_named(module)}\n" for module in modules)


def _is_complete(folder: Path, modules: tuple[Module, ...]) -> bool:
    marker = folder / MARKER
    return marker.exists() and marker.read_text() == _listing(modules)


def _fetch(modules: tuple[Module, ...], folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The folder is absent, incomplete or of another list of modules.
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        staged = Path(temporary) / "jars"
        for module in modules:
            _retrieve(module, staged, Path(temporary) / "ivy")
        (staged / MARKER).write_text(_listing(modules))
        try:
            staged.rename(folder)
        except OSError as exc:
            # Another process may have been faster; its folder is as good as ours.
            if not _is_complete(folder, modules):
                raise JarsError(f"cannot put the jars at {folder}: {exc}") from exc


def _retrieve(module: Module, into: Path, ivy_cache: Path) -> None:
    pattern = f"{into}/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(java()), "-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main", "-warn"]
    command += ["-cache", str(ivy_cache), "-confs", "default", "-dependency", *module[:3]]
    command += ["-notransitive"] if module.alone else []
    command += ["-retrieve", pattern]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise JarsError(f"Ivy took over {FETCH_TIMEOUT_SECONDS} s for {_named(module)}") from exc
    # Ivy may report a missing artifact in its output and still exit 0.
    arrived = (into / f"{module.name}-{module.version}.jar").exists()
    if done.returncode != 0 or not arrived:
        tail = (done.stdout + done.stderr)[-2000:]
        raise JarsError(f"Ivy could not fetch {_named(module)}; is Maven Central up?\n{tail}")


def _named(module: Module) -> str:
    return ":".join((module.organisation, module.name, module.version))


def pyspark_jars() -> Path:
    """Return the folder of PySpark's own jars; JarsError without PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsError("PySpark is not installed, and it carries Ivy: run `make env`")
    return Path(spec.origin).parent / "jars"


def main() -> None:
    """Print the folder of each component named on the command line."""
    if not sys.argv[1:]:
        raise SystemExit(f"usage: jars.py NAME...; names: {', '.join(sorted(COMPONENTS))}")
    try:
        for name in sys.argv[1:]:
            print(jars(name))  # noqa: T201
    except JarsError as exc:
        raise SystemExit(f"jars.py: {exc}") from exc


if __name__ == "__main__":
    main()
