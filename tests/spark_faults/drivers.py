"""Drivers as processes with faults: start them, wait for them, kill, stop and resume them.

The rule: no driver, and no process that it starts, outlives the test. A driver leads the process
group of its JVM. Spark's workers are in groups of their own, which end with the JVM. If a fault
parks a worker, the test releases or kills it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from tests.spark_faults.job_driver import Plan
from tests.spark_faults.upkeep_driver import Upkeep
from tests.support.kafka_broker import die_with_parent
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

HERE = Path(__file__).parent
HOOKS = HERE / "hooks"
JVM = "-XX:TieredStopAtLevel=1"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that happens once, at a point of `hooks/sitecustomize.py`."""

    name: str
    act: str
    at: str
    where: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0

    def to_json(self) -> str:
        where = {"at": self.at, **self.where}
        return json.dumps({"act": self.act, "where": where, "seconds": self.seconds})


class Driver:
    """A process that runs a plan; `python` and `path` are its interpreter and its PYTHONPATH."""

    def __init__(
        self,
        folder: Path,
        plan: Plan | Upkeep,
        faults: Sequence[Fault] = (),
        python: str = sys.executable,
        path: Sequence[str] | None = None,
        submit: Sequence[str] = (),
        module: str = "tests.spark_faults.job_driver",
    ) -> None:
        folder.mkdir()
        self.folder, self._events = folder, folder / "events.jsonl"
        self.faults = folder / "faults"
        self.faults.mkdir()
        for fault in faults:
            (self.faults / f"{fault.name}.json").write_text(fault.to_json())
        (folder / "plan.json").write_text(plan.to_json())
        usual = [str(PROJECT), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
        environment = {
            **os.environ,
            "KLOG_FAULTS": str(self.faults),
            "PYTHONPATH": ":".join([str(HOOKS), *(usual if path is None else path)]),
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "PYSPARK_SUBMIT_ARGS": " ".join(
                ["--conf", f"'spark.driver.extraJavaOptions={JVM}'", *submit, "pyspark-shell"]
            ),
        }
        environment.pop("SPARK_HOME", None)
        with (folder / "out").open("wb") as out:
            self._process = subprocess.Popen(
                [python, "-m", module, folder / "plan.json", self._events],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._processes: dict[int, psutil.Process] = {}

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        for process in self._processes.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def events(self) -> list[tuple[str, str]]:
        """Return the events of jobs so far: (job, event)."""
        return [(event["job"], event["event"]) for event in self._read_events() if event["job"]]

    def errors(self, job: str) -> list[str]:
        """Return the errors of a job's tries."""
        return [
            event["error"]
            for event in self._read_events()
            if event["job"] == job and event["error"]
        ]

    def report(self, job: str) -> dict[str, Any]:
        """Return the report of a job."""
        (report,) = [
            event["report"]
            for event in self._read_events()
            if event["job"] == job and event["report"]
        ]
        return dict(report)

    def wait(self) -> Driver:
        """Wait until all jobs have ended."""
        self._until(lambda: self._process.poll() is not None, "its end")
        last_events = [(event["job"], event["event"]) for event in self._read_events()[-1:]]
        assert last_events == [("", "ended")], self.tail()
        return self

    def wait_for(self, *faults: str) -> None:
        """Wait until faults have happened."""
        pending = set(faults)

        def have_happened() -> bool:
            pending.difference_update([fault for fault in pending if self.pid_of(fault)])
            ended = pending & {job for job, _ in self.events()}
            assert not ended, f"not reached: {ended}\n{self.tail()}"
            return not pending

        self._until(have_happened, f"one of {faults}")

    def wait_for_events(self, *jobs: str) -> None:
        """Wait until jobs are done."""
        expected = set(jobs)

        def are_there() -> bool:
            done = {job for job, event in self.events() if event == "done"}
            return expected <= done

        self._until(are_there, f"the end of {jobs}")

    def pid_of(self, fault: str) -> int:
        """Return the id of the process in which a fault has happened; 0 if it has not."""
        try:
            return int((self.faults / f"{fault}.fired").read_text())
        except FileNotFoundError:
            return 0

    def has_aborted(self, topic: str) -> bool:
        """Whether Spark called `abort` for a topic."""
        return (self.faults / f"{topic}.aborted").exists()

    def release(self, *faults: str) -> None:
        """Let parked processes continue."""
        for fault in faults:
            (self.faults / f"{fault}.release").touch()

    def kill(self, but: Sequence[str] = ()) -> None:
        """SIGKILL the driver, its JVM and parked processes, except those at the faults `but`."""
        self._note_processes()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        spared = {self.pid_of(fault) for fault in but}
        for fault in self.faults.glob("*.json"):
            pid = self.pid_of(fault.stem)
            if pid in self._processes and pid not in spared:
                with suppress(psutil.NoSuchProcess):
                    self._processes[pid].kill()
        processes = [process for pid, process in self._processes.items() if pid not in spared]
        _, left = psutil.wait_procs(processes, timeout=TIMEOUT_SECONDS)
        assert not left, f"they outlive their driver: {left}"

    def stop(self) -> None:
        """Send SIGSTOP to the driver, its JVM and all its workers."""
        self._note_processes()
        for process in self._processes.values():
            process.suspend()

    def resume(self) -> None:
        """Send SIGCONT to them."""
        for process in self._processes.values():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def release_orphan(self, fault: str) -> None:
        """Let a process that outlives its driver continue, and wait until it has ended."""
        process = self._processes[self.pid_of(fault)]
        assert process.is_running()
        self.release(fault)
        psutil.wait_procs([process], timeout=TIMEOUT_SECONDS)
        assert not process.is_running()

    def tail(self) -> str:
        """Return the end of the driver's output, and its events."""
        out = (self.folder / "out").read_bytes()[-6000:].decode(errors="replace")
        return f"{out}\n{self._read_events()}"

    def _note_processes(self) -> None:
        """Remember all processes that the driver has started."""
        with suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self._process.pid)
            for process in [leader, *leader.children(recursive=True)]:
                self._processes.setdefault(process.pid, process)

    def _read_events(self) -> list[dict[str, Any]]:
        try:
            lines = self._events.read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def _until(self, is_so: Callable[[], bool], description: str) -> None:
        seen, deadline = -1, 0.0
        while not is_so():
            happened = len(self._read_events()) + len(list(self.faults.glob("*.fired")))
            if happened > seen:
                seen, deadline = happened, time.monotonic() + TIMEOUT_SECONDS
            assert time.monotonic() < deadline, f"{description} never came\n{self.tail()}"
            if self._process.poll() is not None:
                assert is_so(), f"it ended before {description}\n{self.tail()}"
            time.sleep(0.05)
