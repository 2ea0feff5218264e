"""Decode logs on one core: klog to Arrow columns, the peers to Python objects.

The rule: the same work for all. Each gets a log as bytes in memory, checks every batch's CRC,
decompresses, and gives offset, timestamp, key and value of each record. The time is the process's
CPU time, so threads would count and other processes do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.logs import LARGE_BATCHES, SMALL_BATCHES, Shape, partition_logs, shape_records
from benchmarks.peers import (
    AIOKAFKA,
    KAFKA_PYTHON,
    kafka_python_reads,
    read_aiokafka,
    read_kafka_python,
)
from benchmarks.timing import Times, Work, interleaved
from klog.connector.segment_chunks import read_chunks
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_parts

KLOG = "klog"
COLUMNS = frozenset({"key", "value", "timestamp_ms", "timestamp_type"})
KAFKA_PYTHON_TARGET = 8.0
AIOKAFKA_TARGETS = {
    SMALL_BATCHES: {"none": 0.7, "lz4": 0.9, "zstd": 1.1},
    LARGE_BATCHES: {"none": 1.0, "lz4": 1.0, "zstd": 1.0},
}


@dataclass(frozen=True, slots=True)
class Result:
    """One log and how fast each reader decodes it."""

    shape: Shape
    times: Times


class BytesFile:
    """A file of klog's store that lies in memory."""

    identity = stamp = "memory"

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self._data = data

    def read(self, begin: int, end: int) -> bytes:
        return self._data[begin:end]

    def close(self) -> None:
        pass


def read_klog(logs: Sequence[bytes]) -> int:
    """Do what the source does with each slice, up to the Arrow columns."""
    count = 0
    for log in logs:
        file = BytesFile(log)
        for chunk in read_chunks(file, 0, file.size_bytes):
            check_batch_crcs(chunk.data, chunk.batches)
            count += sum(
                len(part.offset) for part in decode_parts(chunk.data, chunk.batches, COLUMNS)
            )
    return count


def run(sizes: Sequence[tuple[int, int]], codecs: Sequence[str], rounds: int) -> Iterator[Result]:
    """Measure every codec and kind of batch for each (value bytes, records)."""
    for value_bytes, count in sizes:
        rows = shape_records(Shape("none", SMALL_BATCHES, value_bytes, count))
        for batch in (SMALL_BATCHES, LARGE_BATCHES):
            for codec in codecs:
                shape = Shape(codec, batch, value_bytes, count)
                yield Result(shape, measure(codec, list(partition_logs(shape, rows)), rounds))


def measure(codec: str, logs: list[bytes], rounds: int) -> Times:
    """Time the three readers; kafka-python, ten times slower, gets the first log only.

    It is left out where it has no library for the codec (snappy).
    """
    works: dict[str, Work] = {KLOG: lambda: read_klog(logs)}
    if kafka_python_reads(codec):
        works[KAFKA_PYTHON] = lambda: read_kafka_python(logs[:1])
    works[AIOKAFKA] = lambda: read_aiokafka(logs)
    return interleaved(works, rounds, time.process_time)
