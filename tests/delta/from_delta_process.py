"""`klog from-delta` as a process with faults, which a test kills at a step that it has reached.

The rule: the faults are those of `tests/spark_faults`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.delta.verb_process import VerbProcess
from tests.spark_faults.drivers import HOOKS, Fault
from tests.support.project import PROJECT

PYTHON_PATH = ":".join(map(str, (HOOKS, PROJECT / "src", PROJECT)))
RETRIED_TASKS = {"spark.master": "local[2,4]"}
NO_SETTINGS: Mapping[str, str] = {}


class FromDeltaProcess(VerbProcess):
    """A run of from-delta."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        faults: Sequence[Fault] = (),
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Start it."""
        self._faults = folder / "faults"
        self._faults.mkdir(parents=True)
        for fault in faults:
            (self._faults / f"{fault.name}.json").write_text(fault.to_json())
        environment = {
            "KLOG_FAULTS": str(self._faults),
            "PYTHONPATH": PYTHON_PATH,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        super().__init__(
            "from-delta", folder, arguments, {**RETRIED_TASKS, **settings}, environment
        )

    def kill(self) -> None:
        """Kill it with its JVM, and the process that waits at a fault."""
        super().kill()
        for fired in self._faults.glob("*.fired"):
            with suppress(ProcessLookupError):
                os.kill(int(fired.read_text()), signal.SIGKILL)

    def has_reached(self, fault: str) -> bool:
        """Return whether a fault has happened."""
        return (self._faults / f"{fault}.fired").exists()

    def wait_for(self, fault: str) -> None:
        """Wait until a fault has happened."""
        self.wait_until(lambda: self.has_reached(fault), fault)
