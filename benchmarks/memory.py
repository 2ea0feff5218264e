"""Measure the peak memory of a process that reads a whole segment through klog, task by task.

The rule: a segment of a broker's full size, read by a fresh process that does nothing else; the
kernel's own figure. The segment repeats a few batches, each with its own offset, which lies outside
the CRC.

    python -m benchmarks.memory LOG_DIRECTORY     # the process that is measured
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.logs import Shape

TARGET_MIB = 300
SEGMENT_BYTES = 1 << 30
TINY_SEGMENT_BYTES = 16 << 20
VALUE_BYTES = 100
REPEATED_RECORDS = 200_000
CHILD_TIMEOUT_SECONDS = 1800

_base_offset = struct.Struct(">q")
_last_offset_delta = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of the process that read one segment."""

    codec: str
    batch: str
    segment_bytes: int
    records: int
    tasks: int
    imported_mib: float
    peak_mib: float


def run(segment_bytes: int) -> Iterator[Result]:
    """Measure small lz4 batches and large zstd batches."""
    from benchmarks.logs import LARGE_BATCHES, SMALL_BATCHES, Shape

    for codec, batch in (("lz4", SMALL_BATCHES), ("zstd", LARGE_BATCHES)):
        shape = Shape(codec, batch, VALUE_BYTES, min(REPEATED_RECORDS, segment_bytes // 100))
        with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
            written = write_repeated(Path(folder), shape, segment_bytes)
            command = [sys.executable, "-m", __spec__.name, folder]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, timeout=CHILD_TIMEOUT_SECONDS
            )
        yield Result(codec, batch, written, **json.loads(done.stdout))


def write_repeated(root: Path, shape: Shape, segment_bytes: int) -> int:
    """Write one segment of nearly `segment_bytes`; return its size."""
    from benchmarks.logs import TOPIC, batches, shape_records, write_segment

    shape_batches = list(batches(shape, shape_records(shape)))
    return write_segment(root / f"{TOPIC}-0", repeated(shape_batches, segment_bytes))


def repeated(segment_batches: list[bytes], size_bytes: int) -> Iterator[bytes]:
    """Repeat batches up to a size, offsets rising."""
    offset = position = 0
    while True:
        for batch in segment_batches:
            position += len(batch)
            if position > size_bytes:
                return
            yield _base_offset.pack(offset) + batch[_base_offset.size :]
            offset += _last_offset_delta.unpack_from(batch, 23)[0] + 1


def read_all(log_directory: str) -> dict[str, float]:
    """Read every task to its end, keeping nothing."""
    from klog.connector.kafka_dir.raw_root import RawRoot
    from klog.connector.options.read_options import parse_read_options
    from klog.connector.source import scan_planner
    from klog.connector.source.task_reader import make_reader

    imported = peak_mib()
    options = parse_read_options({"subscribePattern": ".*", "startingOffsets": "earliest"})
    root = RawRoot([log_directory])
    reader = make_reader([log_directory], options)
    tasks = scan_planner.plan_snapshot(root.snapshot(), options)
    records = sum(batch.num_rows for task in tasks for batch in reader.read(task))
    return {
        "records": records,
        "tasks": len(tasks),
        "imported_mib": imported,
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """Return this program's peak resident memory.

    `getrusage` includes the parent's memory, because Linux keeps it across exec; `VmHWM` does not.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    raise RuntimeError("the kernel does not say how much memory this process used")


if __name__ == "__main__":
    print(json.dumps(read_all(sys.argv[1])))
