"""A verb of `klog` over Delta tables as a process that a test kills.

The rule: a process leads the group of its JVM, and Python's workers end with the JVM.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tests.support.delta_jars import delta_jars
from tests.support.kafka_broker import die_with_parent
from tests.support.waiting import TIMEOUT_SECONDS

SETTINGS = {
    "spark.jars": ",".join(map(str, delta_jars())),
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xlog:gc",
}
"""A JVM that prints, on its output: that of a verb is its report alone."""
NO_ENVIRONMENT: Mapping[str, str] = {}
Self = TypeVar("Self", bound="VerbProcess")


class VerbProcess:
    """A run of a verb; a context manager that kills it at the end."""

    def __init__(
        self,
        verb: str,
        folder: Path,
        arguments: Sequence[str],
        settings: Mapping[str, str],
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> None:
        """Start it; its output goes to a file."""
        folder.mkdir(parents=True, exist_ok=True)
        self._output, self._errors = folder / "output", folder / "errors"
        words = [str(Path(sys.executable).with_name("klog")), verb, *arguments, "--json"]
        for name, value in {**SETTINGS, **settings}.items():
            words += ["--conf", f"{name}={value}"]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                words,
                cwd=folder,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill it with its JVM and its workers."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def report(self) -> dict[str, Any]:
        """Wait for its end, and return its report."""
        code = self.process.wait(TIMEOUT_SECONDS)
        assert code == 0, self._errors.read_text()[-4000:]
        report: dict[str, Any] = json.loads(self._output.read_text())
        return report

    def wait_until(self, is_there: Callable[[], bool], expected: str = "what is awaited") -> None:
        """Wait until something is seen, while it runs."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not is_there():
            assert self.process.poll() is None, self._errors.read_text()[-4000:]
            assert time.monotonic() < deadline, f"{expected} was not seen"
            time.sleep(0.001)
