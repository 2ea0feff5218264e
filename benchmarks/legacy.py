"""Decode logs of message formats v0 and v1 on one core, against kafka-python, whose bytes they are.

The rule: as in `decode`, and every record's own CRC is checked too, as both consumers check it. The
entries are kafka-python's own builder's; a wrapper gets its offset as a broker gives it, outside
the CRC.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from benchmarks.decode import KLOG, read_klog
from benchmarks.logs import FIRST_TIMESTAMP_MS, PARTITIONS, SMALL_BATCHES, Shape, shape_records
from benchmarks.peers import KAFKA_PYTHON, read_kafka_python_legacy
from benchmarks.records import KEY_BYTES, Bytes
from benchmarks.timing import Times, interleaved
from klog.logformat.codecs.codec_names import CODEC_NAMES

MAGICS = (0, 1)
CODECS = ("none", "lz4")
KAFKA_PYTHON_TARGET = 5.0

_offset = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Result:
    """One log of a format and how fast each reader decodes it."""

    magic: int
    shape: Shape
    times: Times


def partition_logs(magic: int, shape: Shape, rows: Bytes) -> Iterator[bytes]:
    """Make the log of each partition: a quarter of the records, 1 ms apart."""
    for part in np.array_split(rows, PARTITIONS):
        yield b"".join(entries(magic, shape, part))


def entries(magic: int, shape: Shape, rows: Bytes) -> Iterator[bytes]:
    """Make the entries of one partition, offsets from 0: a wrapper, or as many plain ones."""
    size, width = shape.batch_records, rows.shape[1]
    codec = CODEC_NAMES.index(shape.codec)
    for first in range(0, len(rows), size):
        data = rows[first : first + size].tobytes()
        builder = LegacyRecordBatchBuilder(magic, codec, len(data) * 2 + 4096)
        count = len(data) // width
        is_relative = magic == 1 and codec
        for index, at in enumerate(range(0, len(data), width)):
            key, value = data[at : at + KEY_BYTES], data[at + KEY_BYTES : at + width]
            offset = index if is_relative else first + index
            if builder.append(offset, FIRST_TIMESTAMP_MS + first + index, key, value) is None:
                raise ValueError("the builder's buffer is too small")
        entry = bytes(builder.build())
        yield _offset.pack(first + count - 1) + entry[_offset.size :] if codec else entry


def run(sizes: Sequence[tuple[int, int]], rounds: int) -> Iterator[Result]:
    """Measure both formats, plain and in wrappers of 16 KiB, for each (value bytes, records)."""
    for value_bytes, count in sizes:
        rows = shape_records(Shape("none", SMALL_BATCHES, value_bytes, count))
        for magic in MAGICS:
            for codec in CODECS:
                shape = Shape(codec, SMALL_BATCHES, value_bytes, count)
                logs = list(partition_logs(magic, shape, rows))
                yield Result(magic, shape, measure(logs, rounds))


def measure(logs: list[bytes], rounds: int) -> Times:
    """Time both readers; kafka-python, several times slower, gets the first log only."""
    works = {
        KLOG: lambda: read_klog(logs),
        KAFKA_PYTHON: lambda: read_kafka_python_legacy(logs[:1]),
    }
    return interleaved(works, rounds, time.process_time)
