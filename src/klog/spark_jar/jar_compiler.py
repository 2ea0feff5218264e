"""Compile klog's jar with what PySpark brings: the Scala compiler is among its jars.

The rule: a jar under its final name is complete. It is compiled in a temporary folder next to it
and renamed, so that two processes that compile at once both win. Only Python and Java are needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from klog.spark_jar.jar_files import (
    BUNDLED,
    SOURCES,
    JarError,
    bundled_jar,
    cached_jar,
    jar_name,
    source_files,
    spark_home,
)

COMPILE_SECONDS = 600
"""A compiler that takes longer is stopped: it takes under half a minute on two idle cores."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files in the jar: the same sources give the same bytes."""


def find_jar(announce: Callable[[str], None]) -> Path:
    """Return klog's jar; compile it if there is none yet.

    Args:
        announce: Called with a line before the compiler starts.

    Raises:
        JarError: There is no PySpark or no Java, the sources do not compile, or the cache cannot be
            written.
    """
    bundled = bundled_jar()
    if bundled is not None:
        return bundled
    jars = _pyspark_jars()
    scala = _version_of(jars, "scala-compiler")
    path = cached_jar(_version_of(jars, "spark-core_2.13"), scala)
    with _kept_at(path):
        is_kept = path.is_file()
    if not is_kept:
        announce(f"klog: compiling the JVM engine once, about 20 s (to {path})")
        compile_jar(path)
    return path


def compile_jar(path: Path) -> None:
    """Compile the sources to a jar.

    Args:
        path: The file of the jar.

    Raises:
        JarError: As `find_jar`.
    """
    files = source_files()
    with _kept_at(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".compiling-", dir=path.parent) as folder:
            classes = Path(folder) / "classes"
            classes.mkdir()
            _run_compiler([file for file in files if file.suffix == ".scala"], classes)
            for file in files:
                if file.suffix != ".scala":
                    target = classes / file.relative_to(SOURCES / "resources")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, target)
            staged = Path(folder) / path.name
            _zip(classes, staged)
            staged.replace(path)


@contextmanager
def _kept_at(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise JarError(
            f"klog's jar cannot be kept at {path} ({exc.strerror or exc}). Set KLOG_CACHE to a "
            "folder that can be written"
        ) from exc


def _run_compiler(sources: list[Path], classes: Path) -> None:
    jars = _pyspark_jars()
    command = [
        _java(),
        "-Xss4m",
        "-cp",
        f"{jars}/*",
        "scala.tools.nsc.Main",
        "-usejavacp",
        "-nowarn",
    ]
    # `-release` would need the JDK's `lib/ct.sym`, which not every Java 21 has.
    command += ["-Xunchecked-java-output-version", "17", "-d", str(classes), *map(str, sources)]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as exc:
        raise JarError(f"the Scala compiler took over {COMPILE_SECONDS} s for klog's jar") from exc
    if done.returncode != 0:
        raise JarError(
            "klog's jar does not compile with this PySpark; klog works without it. The compiler "
            f"says:\n{(done.stdout + done.stderr)[-2000:]}"
        )


def _zip(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            info = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(info, file.read_bytes())


def _pyspark_jars() -> Path:
    """Return the folder of the jars of the Spark that this Python starts."""
    home = spark_home()
    folder = None if home is None else home / "jars"
    if folder is None or not any(folder.glob("scala-compiler-*.jar")):
        raise JarError(
            "klog's jar is compiled with the Scala compiler among Spark's jars, and there is none "
            f"({folder or 'PySpark is not installed'}). Install pyspark, or a wheel of klog"
        )
    return folder


def _version_of(jars: Path, name: str) -> str:
    path = next(iter(sorted(jars.glob(f"{name}-*.jar"))), None)
    return "unknown" if path is None else path.stem.removeprefix(f"{name}-")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        raise JarError(f"no Java: {home or 'PATH'} has no java. Set JAVA_HOME to a Java 17 or 21")
    return java


def main() -> None:
    """Make the jar that a wheel bundles, if it is not there: `make jar`."""
    path = BUNDLED / jar_name()
    if bundled_jar() is None:
        for stale in BUNDLED.glob("*.jar"):
            stale.unlink()
        compile_jar(path)
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
