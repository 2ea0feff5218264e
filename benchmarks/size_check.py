"""Measure the size check of Parquet files, for a checkpoint and a sidecar.

The rule: one process, files in memory, the same bytes with the check and without it, in turns. A
load decodes the file to a state or a commit, as a topic's reader does; a table is Arrow's part of
it. Without the check Arrow reads the file directly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.commit_histories import TOPIC, state_of
from benchmarks.spark_write import Result
from benchmarks.timing import interleaved
from klog.connector.commit_log import (
    commit_sidecar,
    parquet_tables,
    segment_entries,
    state_checkpoint,
)
from klog.connector.commit_log.commit import Actions, Commit

SEGMENTS, TINY_SEGMENTS = 100_000, 3_000
VERSION = 1_000
Work: TypeAlias = Callable[[], object]
CLOCKS: dict[str, Callable[[], float]] = {
    "CPU time": time.process_time,
    "wall time": time.perf_counter,
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file and the function that loads it."""

    kind: str
    data: bytes
    load: Work


def run(segments: int, rounds: int) -> Iterator[Result]:
    """Compare loads and tables of both kinds of files, by both clocks."""
    for file in (checkpoint_file(segments), sidecar_file(segments)):
        works: dict[str, tuple[Work, Work]] = {
            "load": (file.load, partial(unchecked, file.load)),
            "table": (
                partial(parquet_tables.decode_table, file.data),
                partial(read_unchecked, file.data),
            ),
        }
        of = f"{file.kind} of {segments:,} segments, {len(file.data) / 1e6:.1f} MB"
        for name, (checked, plain) in works.items():
            # Tables and loads do not share turns: the memory that loads leave slows tables.
            counted = {"with": _counted(checked, segments), "without": _counted(plain, segments)}
            for clock_name, clock in CLOCKS.items():
                times = interleaved(counted, rounds, clock)
                ratio = times.ratio("without", "with")
                yield Result(f"{name} with the check / without: {clock_name}", of, str(ratio))
                taken = times.median_seconds("with") * 1e3
                yield Result(f"{name}: {clock_name}", of, f"{taken:.1f} ms")


def checkpoint_file(segments: int) -> TableFile:
    """Make a checkpoint without parts."""
    _, data = state_checkpoint.encode_checkpoint(state_of(segments, VERSION))
    return TableFile(
        "checkpoint", data, lambda: state_checkpoint.decode_checkpoint(data, None, TOPIC)
    )


def sidecar_file(segments: int) -> TableFile:
    """Make the sidecar of a commit that adds all segments of a state."""
    rows = state_of(segments, VERSION).live.rows().select(segment_entries.SCHEMA.names)
    commit = Commit(VERSION, "w", 1, "append", "benchmark", Actions(add=tuple(rows.to_pylist())))
    sidecar = commit_sidecar.encode_sidecar(commit)
    bare = replace(commit, actions=Actions(), sidecar=sidecar.name)
    return TableFile(
        "sidecar",
        sidecar.data,
        lambda: commit_sidecar.decode_sidecar(bare, sidecar.name, sidecar.data, TOPIC),
    )


def read_unchecked(data: bytes) -> pa.Table:
    """Read a table as Arrow does, however much it holds."""
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)


def unchecked(load: Work) -> object:
    """Load a file without the check."""
    with _check_left_out():
        return load()


@contextmanager
def _check_left_out() -> Iterator[None]:
    checked = parquet_tables.decode_table
    parquet_tables.decode_table = read_unchecked
    try:
        yield
    finally:
        parquet_tables.decode_table = checked


def _counted(work: Work, segments: int) -> Callable[[], int]:
    def counted() -> int:
        work()
        return segments

    return counted
