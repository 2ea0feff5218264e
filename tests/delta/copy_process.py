"""`klog to-delta` as a process that a test kills, and what can be seen of a table from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from klog.jobs.shared.delta.delta_session import CATALOG, EXTENSION
from tests.support.delta_jars import delta_jars
from tests.support.kafka_broker import die_with_parent
from tests.support.project import PROJECT

WAIT_SECONDS = 180
SETTINGS = {
    "spark.jars": ",".join(map(str, delta_jars())),
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class CopyProcess:
    """A run of to-delta, which leads the process group of its JVM and its workers."""

    def __init__(self, folder: Path, arguments: Sequence[str], **settings: str) -> None:
        """Start it; its output goes to a file."""
        folder.mkdir(parents=True, exist_ok=True)
        self._output = folder / "output"
        words = [str(Path(sys.executable).with_name("klog")), "to-delta", *arguments, "--json"]
        for name, value in {**SETTINGS, **settings}.items():
            words += ["--conf", f"{name}={value}"]
        with self._output.open("wb") as output, (folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                words,
                cwd=PROJECT,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._errors = folder / "errors"

    def __enter__(self) -> CopyProcess:
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
        code = self.process.wait(WAIT_SECONDS)
        assert code == 0, self._errors.read_text()[-4000:]
        report: dict[str, Any] = json.loads(self._output.read_text())
        return report

    def wait_until(self, is_there: Callable[[], bool]) -> None:
        """Wait until something is seen, while it runs."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_there():
            assert self.process.poll() is None, self._errors.read_text()[-4000:]
            assert time.monotonic() < deadline, "nothing was seen"
            time.sleep(0.001)


def commits(table: Path) -> int:
    """Return how many commits a table has."""
    return len(list(table.glob("_delta_log/*.json")))


def data_files(table: Path) -> int:
    """Return how many data files lie in the folder of a table, committed or not."""
    return len(list(table.glob("*.parquet")))


def delta_settings() -> dict[str, str]:
    """Return the settings of a session with Delta."""
    return {**SETTINGS, EXTENSION[0]: EXTENSION[1], CATALOG[0]: CATALOG[1]}
