"""`klog from-delta` as a process with faults, which a test kills at a step that it has reached.

The rule: the faults are those of `tests/spark_faults`. A process leads the group of its JVM, and
Python's workers end with the JVM.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.spark_faults.drivers import HOOKS, Fault
from tests.support.delta_jars import delta_jars
from tests.support.kafka_broker import die_with_parent
from tests.support.project import PROJECT

WAIT_SECONDS = 180
PYTHON_PATH = ":".join(map(str, (HOOKS, PROJECT / "src", PROJECT)))
SETTINGS = {
    "spark.jars": ",".join(map(str, delta_jars())),
    "spark.master": "local[2,4]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


NO_SETTINGS: Mapping[str, str] = {}


class FromDeltaProcess:
    """A run of from-delta."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        faults: Sequence[Fault] = (),
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Start it; its output goes to a file."""
        self._faults = folder / "faults"
        self._faults.mkdir(parents=True)
        for fault in faults:
            (self._faults / f"{fault.name}.json").write_text(fault.to_json())
        self._output, self._errors = folder / "output", folder / "errors"
        words = [str(Path(sys.executable).with_name("klog")), "from-delta", *arguments, "--json"]
        for name, value in {**SETTINGS, **settings}.items():
            words += ["--conf", f"{name}={value}"]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                words,
                cwd=folder,
                env={
                    **os.environ,
                    "KLOG_FAULTS": str(self._faults),
                    "PYTHONPATH": PYTHON_PATH,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def __enter__(self) -> FromDeltaProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill it with its JVM, and the process that waits at a fault."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for fired in self._faults.glob("*.fired"):
            try:
                os.kill(int(fired.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                continue

    def report(self) -> dict[str, Any]:
        """Wait for its end, and return its report."""
        code = self.process.wait(WAIT_SECONDS)
        assert code == 0, self._errors.read_text()[-4000:]
        report: dict[str, Any] = json.loads(self._output.read_text())
        return report

    def has_reached(self, fault: str) -> bool:
        """Return whether a fault has happened."""
        return (self._faults / f"{fault}.fired").exists()

    def wait_for(self, fault: str) -> None:
        """Wait until a fault has happened."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.has_reached(fault):
            assert self.process.poll() is None, self._errors.read_text()[-4000:]
            assert time.monotonic() < deadline, f"{fault} was not reached"
            time.sleep(0.01)
