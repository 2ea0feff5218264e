"""Run sbt with PySpark's jars: `python -m tools.sbt shim/test`.

The rule: sbt is for those who work on `jvm/`: its tests and its format. `make jar` does without it.
Its launcher comes through Ivy, and gets the rest of sbt from Maven Central.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tools.jars import JarsError, jars, java, pyspark_jars

_OPTIONS = (
    "-Xmx1g", "-Xss4m", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m",
    "-Dsbt.color=false",
)  # fmt: skip
"""One compiler, as in `run_suites.py`: for one compilation of Scala, the second one costs more than
it saves."""


def main(tasks: list[str]) -> int:
    """Run tasks of sbt; return its exit code."""
    try:
        launcher = next(jars("sbt").glob("sbt-launch-*.jar"))
        command = [str(java()), *_OPTIONS, "-jar", str(launcher)]
        environment = {**os.environ, "SPARK_JARS": str(pyspark_jars())}
    except JarsError as exc:
        raise SystemExit(f"sbt: {exc}") from exc
    done = subprocess.run(  # noqa: S603
        [*command, *tasks], env=environment, stdin=subprocess.DEVNULL, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
