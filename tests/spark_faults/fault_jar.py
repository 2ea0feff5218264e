"""The faults of tasks that the JVM runs, compiled from `jvm/src/test/scala/klog/faults`.

The rule: a driver under test gets them and klog's jar by its class path, so that nothing of them is
in klog's jar.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from klog.spark_jar.jar_compiler import find_jar
from klog.spark_jar.jar_files import spark_home
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS
from tools.java_home import java_home

SOURCES = PROJECT / "jvm/src/test/scala/klog/faults"
PYTHON, JVM = "python", "jvm"


def engines(*in_ci: str) -> pytest.MarkDecorator:
    """Run a test with each engine for its writes; those not in CI run with `make full` only."""
    marked = [
        pytest.param(engine, marks=() if engine in in_ci else pytest.mark.full)
        for engine in (PYTHON, JVM)
    ]
    return pytest.mark.parametrize("write_conf", marked, indirect=True, scope="module")


def point(at: str, write_conf: Mapping[str, str]) -> str:
    """Return the point of a fault for an engine: Python's tasks stage what they encode."""
    return "batch" if at == "rows" and not write_conf else at


def compile_faults(folder: Path) -> None:
    """Compile the faults to a new folder."""
    folder.mkdir()
    home = spark_home()
    assert home is not None
    classes = f"{home / 'jars'}/*:{find_jar(print)}"
    java = str(java_home() / "bin/java")
    command = [java, "-cp", classes, "scala.tools.nsc.Main", "-usejavacp", "-d", str(folder)]
    command += map(str, sorted(SOURCES.glob("*.scala")))
    subprocess.run(command, check=True, timeout=TIMEOUT_SECONDS)


def jvm_writes(faults: Path) -> Mapping[str, str]:
    """Return the conf of a driver whose writes the JVM runs, with the faults of that folder."""
    classes = f"{faults}:{find_jar(print)}"
    return {
        "spark.klog.write.engine": "jvm",
        "spark.driver.extraClassPath": classes,
        "spark.executor.extraClassPath": classes,
        "spark.sql.extensions": "klog.faults.FaultyWrites",
    }
