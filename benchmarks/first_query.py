"""Where the seconds of a new session's first stream go: klog, and a source that does nothing.

The rule: fresh processes in turns (`first_query_process.py`), a thousand records in a klog root.
What a Python source that does nothing takes is Spark's: a JVM that has streamed nothing yet, and
Python processes that import PySpark. klog's part is the difference.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import klog
from benchmarks import ready_stream
from benchmarks.logs import TOPIC
from benchmarks.spark_write import Result
from benchmarks.timing import Spread

RECORDS = 1000
KLOG, READY = "klog", "a source that does nothing"


def run(rounds: int) -> Iterator[Result]:
    """Run the first query of fresh sessions, in turns."""
    seconds: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in (KLOG, READY)}
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
        root = Path(path) / "root"
        log = klog.open(root)
        log.create_topic(TOPIC, 1)
        log.append(TOPIC, pa.table({"value": [b"x" * ready_stream.VALUE_BYTES] * RECORDS}))
        sources = {KLOG: ["klog", str(root)], READY: [ready_stream.NAME]}
        for _ in range(rounds):
            for name, arguments in sources.items():
                for step, taken in _first_query(arguments).items():
                    seconds[name][step].append(taken)
    for step in seconds[KLOG]:
        for name in sources:
            yield Result(f"{step}: s", name, str(Spread.of(seconds[name][step])))


def _first_query(arguments: list[str]) -> dict[str, float]:
    """Return the seconds of each step."""
    command = [sys.executable, "-m", "benchmarks.first_query_process", *arguments]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {step: float(taken) for step, taken in json.loads(printed.splitlines()[-1]).items()}
