"""Run test suites side by side: `python -m tools.run_suites test`, `ci` or `full`.

The rule: a run is one list of steps. Three workers take them in its order, so suites that wait for
servers leave the cores to suites that compute. A step that fails ends none of the others. A step's
output is printed when the step ends, so that steps do not mix. The last lines are a table: seconds
of each step and what it took of the cores, which is what the steps share; then tests and seconds of
each suite. How the failed steps ended comes again below it, so that the end of a log says what is
wrong. The exit code is 1 if a step failed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tools import spark_archive
from tools.suite_times import line_of

Step: TypeAlias = tuple[str, ...]
"""`pytest EXPRESSION ...` runs the tests that a marker expression selects, `make TASK` a task, and
`tool NAME` a module of `tools`."""
SPARK_ARCHIVE = ("tool", "spark_archive")
"""Sessions that start before its end do without it, so it is the first step."""

UNIT = "not spark and not delta and not kafka and not stores and not package and not slow"
"""Quick tests, without Java."""
SLOW = "slow and not spark and not delta and not kafka and not stores and not package"
"""Simulations, kills and long property runs, without Java."""
ON_SPARK = "spark and not slow and not package"
ON_DELTA = "delta and not slow"
"""Tests on Delta tables: their session has other jars than the one of the tests on Spark."""
DELTA_KILLS = "delta and slow"
"""Copies of Delta tables that are killed: each starts drivers of its own."""
ON_CLUSTERS = "((spark and slow) or package)"
"""Tests that start drivers and executors of their own, and kill them; installed wheels and zips."""
ON_KAFKA = "kafka and not spark and not delta and not package and not stores"
ON_STORES = "stores and not spark and not delta and not package"


def _in_ci(expression: str, *more: str) -> Step:
    """Return the tests of a suite that CI runs."""
    return ("pytest", f"{expression} and not full", *more)


def _sets(count: int) -> str:
    """Return the option that leaves so many parameter sets to each test."""
    return f"--parameter-sets={count}"


WORKERS = 3
"""So many steps run at once."""
TEST: Sequence[Step] = (
    SPARK_ARCHIVE,
    _in_ci(UNIT),
    _in_ci(SLOW),
    _in_ci(ON_SPARK, _sets(2)),
    _in_ci(ON_KAFKA, _sets(1)),
    _in_ci(ON_DELTA, _sets(2)),
    _in_ci(ON_CLUSTERS, _sets(2)),
    _in_ci(ON_STORES, _sets(3)),
    _in_ci(DELTA_KILLS),
)
"""What the README calls. Steps without a Java process and long ones are first, so that no long one
is left alone at the end. Two sets with Spark are often the two engines; three on stores, the three.
"""
CI: Sequence[Step] = (
    *TEST,
    ("make", "scala"),
    ("make", "docs"),
    ("make", "types"),
    ("make", "lint"),
)
FULL: Sequence[Step] = (
    SPARK_ARCHIVE,
    ("pytest", UNIT),
    ("pytest", ON_KAFKA),
    ("pytest", ON_SPARK),
    ("pytest", ON_STORES),
    ("pytest", ON_DELTA),
    ("pytest", DELTA_KILLS),
    ("pytest", ON_CLUSTERS),
    ("pytest", SLOW),
    ("make", "smoke-min"),
    ("make", "spark-next"),
    ("make", "bench-tiny-all"),
    ("make", "fuzz"),
    ("make", "scala"),
    ("make", "browser"),
    ("make", "types"),
    ("make", "lint"),
)
SLOWEST = 15
"""So many tests of each step are named with their seconds."""
LAST_LINES = 12
"""So many lines of a failed step are printed again: pytest's are the names of failed tests."""
QUICK_JVMS = f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m {spark_archive.jvm_options()}"
"""Spark's drivers compile once: a second time took two fifths of what a suite costs them. A JVM
that compiles once has 48 MB for code by default. The suite on Delta tables fills them, and then a
quarter of its time went to making room.
"""
INTERPRETED = (
    f"{QUICK_JVMS} -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
)
"""Spark writes no Java for each plan, which is two fifths of what tests on Delta tables cost. The
full run has Spark's default, and so do processes whose own options take the place of these."""
RUNS = {"test": (TEST, INTERPRETED), "ci": (CI, INTERPRETED), "full": (FULL, QUICK_JVMS)}


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step took; `cpu_seconds` is that of all its processes (tools/step_process.py)."""

    name: str
    seconds: float
    cpu_seconds: float
    is_passed: bool
    last_lines: Sequence[str]


@dataclass(slots=True)
class Run:
    """The steps of one run: their processes while they run, their results afterwards.

    `jvm_options` are those of Spark's drivers.
    """

    folder: Path
    jvm_options: str = QUICK_JVMS
    steps: list[StepResult] = field(default_factory=list)
    _processes: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_stopped: bool = False

    def run(self, steps: Sequence[Step]) -> bool:
        """Run all steps, in their order; return whether every step passed. An error stops them."""
        with ThreadPoolExecutor(WORKERS) as workers:
            try:
                for _ in workers.map(self._run_step, steps):
                    pass
            except BaseException:
                self.stop()
                raise
        return all(step.is_passed for step in self.steps) and not self._is_stopped

    def stop(self) -> None:
        """End what still runs."""
        with self._lock:
            self._is_stopped = True
            for process in self._processes:
                os.killpg(process.pid, signal.SIGTERM)

    def suites(self) -> dict[str, tuple[int, float]]:
        """Return the tests and seconds of each suite."""
        totals: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for path in sorted(self.folder.glob("*.json")):
            for suite, (tests, seconds) in json.loads(path.read_text()).items():
                totals[suite] = (totals[suite][0] + tests, totals[suite][1] + seconds)
        return dict(totals)

    def _run_step(self, step: Step) -> None:
        name = " ".join(step)
        started = time.monotonic()
        with tempfile.TemporaryFile(dir=self.folder) as output:
            with self._lock:
                if self._is_stopped:
                    return
                process = self._start(step, output.fileno())
                self._processes.add(process)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            is_passed = process.returncode == 0
            seconds = time.monotonic() - started
            cpu_seconds = usage.ru_utime + usage.ru_stime
            with self._lock:
                self._processes.discard(process)
                output.seek(0)
                last_lines = deque((line.decode(errors="replace") for line in output), LAST_LINES)
                self.steps.append(StepResult(name, seconds, cpu_seconds, is_passed, last_lines))
                output.seek(0)
                print(f"== {name}", flush=True)  # noqa: T201
                shutil.copyfileobj(output, sys.stdout.buffer)
                sys.stdout.flush()

    def _start(self, step: Step, output: int) -> subprocess.Popen[bytes]:
        folder = tempfile.mkdtemp(dir=self.folder)
        if step[0] == "pytest":
            times = f"{folder}.json"
            command = [sys.executable, "-m", "pytest", "-p", "tools.suite_times"]
            command += ["-p", "tools.sampled_parameters", "--suite-times", times]
            command += [f"--durations={SLOWEST}", "-m", *step[1:]]
        elif step[0] == "tool":
            command = [sys.executable, "-m", f"tools.{step[1]}"]
        else:
            command = ["make", "--no-print-directory", *step[1:]]
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "tools.step_process", *command],
            # Runs would race for one folder of temporary files.
            env={
                **os.environ,
                "SPARK_SUBMIT_OPTS": self.jvm_options,
                "PYTEST_DEBUG_TEMPROOT": folder,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def main(name: str) -> int:
    """Run the steps of this name and print their table; return the exit code."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        steps, jvm_options = RUNS[name]
        run = Run(Path(folder), jvm_options)
        signal.signal(signal.SIGTERM, lambda *_: run.stop())
        try:
            is_passed = run.run(steps)
        except KeyboardInterrupt:
            is_passed = False
        print("== seconds of each step, and CPU seconds")  # noqa: T201
        for step in run.steps:
            failed = "" if step.is_passed else "  FAILED"
            print(f"{step.seconds:8.1f} s {step.cpu_seconds:8.1f} s  {step.name}{failed}")  # noqa: T201
        print("== seconds of each suite")  # noqa: T201
        for suite, (tests, seconds) in sorted(run.suites().items()):
            print(line_of(suite, tests, seconds))  # noqa: T201
        for step in run.steps:
            if not step.is_passed:
                print(f"== the end of {step.name}")  # noqa: T201
                print("".join(step.last_lines).rstrip())  # noqa: T201
    print(f"{time.monotonic() - started:8.1f} s  all of it")  # noqa: T201
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
