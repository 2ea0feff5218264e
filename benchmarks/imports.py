"""What it costs to start: the command line, and each Python process of a read by Spark.

The rule: fresh processes, in turns, the files in the page cache and compiled; a command is wall
time against `import pyarrow`, which every read needs. Of a process of Spark's, what PySpark has
imported before it calls klog is not counted: the CPU time is of klog's part, its imports included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import klog
from benchmarks.logs import SMALL_BATCHES, TOPIC, Shape, shape_records, write_log_directory
from benchmarks.spark_write import Result
from benchmarks.timing import Spread, Work, interleaved
from tests.support.read_processes import STEPS, run_step

RECORDS = 1000
PYARROW, HELP, LIST, LIST_RAW = (
    "import pyarrow", "klog --help", "klog topics list", "klog topics list, a broker's directory"
)  # fmt: skip

CPU_TIME = """
import time

def begin():
    global before
    before = time.process_time()

def end():
    print(time.process_time() - before)
"""
"""Print the CPU seconds of what klog did, its imports included."""


def run(rounds: int) -> Iterator[Result]:
    """Measure commands, then the processes of a read."""
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
        folder = Path(path)
        root, raw = folder / "root", folder / "raw"
        log = klog.open(root)
        log.create_topic(TOPIC, 1)
        log.append(TOPIC, pa.table({"value": [b"x" * 100] * RECORDS}))
        shape = Shape("none", SMALL_BATCHES, 100, RECORDS)
        write_log_directory(raw, shape, shape_records(shape))
        yield from _commands(root, raw, rounds)
        for kind, location in {"a klog root": root, "a broker's directory": raw}.items():
            yield from _processes(kind, location, folder, rounds)


def _commands(root: Path, raw: Path, rounds: int) -> Iterator[Result]:
    lines = {
        PYARROW: ["-c", "import pyarrow"],
        HELP: ["-m", "klog", "--help"],
        LIST: ["-m", "klog", "topics", "list", "--root", str(root)],
        LIST_RAW: ["-m", "klog", "topics", "list", "--root", str(raw)],
    }
    works = {name: _process([sys.executable, *line]) for name, line in lines.items()}
    times = interleaved(works, rounds, time.perf_counter)
    for name in lines:
        target = "0.2" if name == HELP else ""
        yield Result(f"{name}: s", "wall time", str(Spread.of(times.seconds[name])), target)
    for name in (LIST, LIST_RAW):
        yield Result(
            f"{name} / {PYARROW}", "wall time", str(times.ratio(PYARROW, name)), "at most 2"
        )


def _processes(kind: str, root: Path, folder: Path, rounds: int) -> Iterator[Result]:
    seconds: dict[str, list[float]] = {step: [] for step in STEPS}
    for turn in range(rounds + 1):
        for step in STEPS:
            printed = run_step(step, CPU_TIME, root, TOPIC, RECORDS, folder)
            if turn:  # The first one may have to compile what it imports.
                seconds[step].append(float(printed))
    for step in STEPS:
        yield Result(
            f"{step}: ms of klog",
            f"CPU time, {kind}",
            str(Spread.of([1000 * second for second in seconds[step]])),
        )


def _process(command: list[str]) -> Work:
    def work() -> int:
        subprocess.run(command, check=True, capture_output=True)
        return 1

    return work
