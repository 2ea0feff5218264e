"""The slices of a committed partition: a filter over its segments.

The rule: a slice wants a range of offsets of one segment; a segment that is larger than a task's
share is wanted in several slices, of equal numbers of offsets. Segments never become Python objects
one by one: a task's slices are one run of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.commit_log.segment_indexes import positions_between, read_segment_index
from klog.connector.commit_log.segment_path import index_file_path
from klog.connector.source import index_narrowing
from klog.connector.source.index_narrowing import IndexReads
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.slice_contract import TaskDict, run_to_dict
from klog.connector.source.slices import UNKNOWN
from klog.connector.source.task_sizing import pack
from klog.connector.store.parallel_reads import read_in_order
from klog.logformat.array_types import Longs, Mask
from klog.logformat.arrow_values import from_numpy, text, to_numpy


@dataclass(frozen=True, slots=True)
class _SliceBounds:
    """The slices of segments, a row each: the segment by its row, offsets of the log, and size."""

    segment: Longs
    start_offset: Longs
    end_offset: Longs
    size_bytes: Longs


def plan_ranges(
    ranges: Sequence[CommittedRange], target: int, index_reads: IndexReads | None
) -> list[TaskDict]:
    """Plan ranges of offsets of one topic, all at once.

    Args:
        ranges: The ranges, which have one table of segments and one isolation level.
        target: About how many bytes a task gets.
        index_reads: How many indexes may be read; None if no index is to be believed.
    """
    log, committed_only = ranges[0].log, ranges[0].offset_range.committed_only
    rows = [part.rows for part in ranges]
    segments = _take(log.table.table, rows)
    log.files.check(segments)
    range_of_segment = np.repeat(np.arange(len(rows)), [len(segment_rows) for segment_rows in rows])
    start_offsets = np.array([part.offset_range.start_offset for part in ranges], np.int64)
    end_offsets = np.array([part.offset_range.end_offset for part in ranges], np.int64)
    bounds = _slice_bounds(
        segments, start_offsets[range_of_segment], end_offsets[range_of_segment], target
    )
    columns = _columns(segments, bounds)
    varying: dict[str, list[Any]] = {}
    if index_reads is not None:
        varying |= _narrow(log, segments, bounds, columns, index_reads)
    varying |= {name: values.tolist() for name, values in columns.items()}
    files = segments["file"].take(from_numpy(bounds.segment)).to_pylist()
    varying["path"] = [f"{log.root.path}/{file}" for file in files]
    if committed_only and not segment_entries.are_format_1(segments):
        varying["aborted"] = _aborted(segments, bounds)
    shared: dict[str, Any] = {
        "topic": log.name.topic,
        "topic_id": log.topic_id,
        "root": log.root.location,
        "is_committed": True,
        "identity": "",
        "stamp": "",
        "committed_only": committed_only,
        "markers_end_offset": UNKNOWN,
        "are_markers_in_file": True,
    }
    shared |= {name: value for name, value in _ABSENT.items() if name not in varying}
    range_of_slice = range_of_segment[bounds.segment]
    first_slices = np.searchsorted(range_of_slice, np.arange(len(ranges) + 1)).tolist()
    return [
        [
            run_to_dict(
                {**shared, "partition": part.log.name.partition},
                {name: values[first + start : first + end] for name, values in varying.items()},
            )
        ]
        for part, (first, after) in zip(ranges, pairwise(first_slices), strict=True)
        for start, end in pack(bounds.size_bytes[first:after], target)
    ]


@dataclass(frozen=True, slots=True)
class CommittedRange:
    """A range of offsets, its partition, and the rows of the segments that have its offsets."""

    offset_range: OffsetRange
    log: CommittedPartition
    rows: range

    @classmethod
    def of(cls, offset_range: OffsetRange, log: CommittedPartition) -> CommittedRange:
        """Look up the rows of a range.

        Args:
            offset_range: The range.
            log: Its partition.
        """
        rows = log.overlapping_rows(offset_range.start_offset, offset_range.end_offset)
        return cls(offset_range, log, rows)


def _take(table: pa.Table, rows: Sequence[range]) -> pa.Table:
    """Return rows of a table; those of one range, or of neighbouring ones, are not copied."""
    first, end = rows[0].start, rows[-1].stop
    if sum(map(len, rows)) == end - first:
        return table.slice(first, end - first)
    numbers = np.concatenate([np.arange(part.start, part.stop) for part in rows])
    return table.select(_COLUMNS).take(from_numpy(numbers))


_COLUMNS = [
    "file", "base_offset", "next_offset", "offset_shift", "size_bytes", "index_bytes", "crc32c",
    "origin", "torn_bytes", "aborted",
]  # fmt: skip
"""The columns of segments that a plan needs."""
_ABSENT: dict[str, Any] = {
    "start_position": 0,
    "index_path": "",
    "index_size_bytes": 0,
    "aborted": [],
}
"""What most slices have: their tasks say it once."""


def _slice_bounds(
    segments: pa.Table, start_offsets: Longs, end_offsets: Longs, target: int
) -> _SliceBounds:
    """Cut segments, between the offsets that are wanted of each, by the bytes of a task."""
    base, next_offset = to_numpy(segments["base_offset"]), to_numpy(segments["next_offset"])
    start = np.maximum(base, start_offsets)
    end = np.minimum(next_offset, end_offsets)
    sizes = to_numpy(segments["size_bytes"]) * ((end - start) / (next_offset - base))
    counts = np.clip(np.ceil(sizes / target), 1, end - start).astype(np.int64)
    segment = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = ((end - start) / counts)[segment]
    first = start[segment] + np.floor(number * step).astype(np.int64)
    is_last = number == counts[segment] - 1
    last = np.where(is_last, end[segment], np.append(first[1:], 0))
    return _SliceBounds(segment, first, last, (sizes / counts)[segment].astype(np.int64))


def _columns(segments: pa.Table, bounds: _SliceBounds) -> dict[str, Longs]:
    """Return the numbers in which slices differ, before any index is read."""

    def slice_column(name: str) -> Longs:
        values: Longs = to_numpy(segments[name])[bounds.segment]
        return values

    shift, size_bytes = slice_column("offset_shift"), slice_column("size_bytes")
    base_offset = slice_column("base_offset") - shift
    # A segment that was compacted or merged may begin after its base offset.
    is_appended = to_numpy(pc.equal(segments["origin"], text("append")))[bounds.segment]
    return {
        "base_offset": base_offset,
        "offset_shift": shift,
        "file_size_bytes": size_bytes + slice_column("torn_bytes"),
        "segment_size_bytes": size_bytes,
        "end_position": size_bytes.copy(),
        "first_offset": np.where(is_appended, base_offset, UNKNOWN),
        "limit_offset": slice_column("next_offset") - shift,
        "start_offset": bounds.start_offset,
        "end_offset": bounds.end_offset,
        "crc32c": slice_column("crc32c"),
    }


def _narrow(
    log: CommittedPartition,
    segments: pa.Table,
    bounds: _SliceBounds,
    columns: dict[str, Longs],
    index_reads: IndexReads,
) -> dict[str, list[Any]]:
    """Narrow the byte ranges of slices by the indexes that may still be read; name the others.

    Changes `columns`. Returns the columns that only such slices have.
    """
    rows = np.flatnonzero(_needs_index(segments, bounds))
    # They ascend. np.unique would import numpy.ma, which a small read would wait for.
    numbers = bounds.segment[rows]
    numbers = numbers[np.diff(numbers, prepend=-1) > 0]
    if not len(numbers):
        return {}
    taken = numbers[: index_reads.take(len(numbers))]
    positions = _narrow_by_indexes(log, segments, bounds, columns, taken)
    varying: dict[str, list[Any]] = {"start_position": positions}
    if len(taken) < len(numbers):
        varying["index_path"] = [""] * len(positions)
        varying["index_size_bytes"] = [0] * len(positions)
        for row in rows[~np.isin(bounds.segment[rows], taken)].tolist():
            number = int(bounds.segment[row])
            varying["index_path"][row] = index_file_path(
                f"{log.root.path}/{segments['file'][number].as_py()}", "index"
            )
            varying["index_size_bytes"][row] = segments["index_bytes"][number].as_py()
    return varying


def _needs_index(segments: pa.Table, bounds: _SliceBounds) -> Mask:
    """Return which slices are less than their segment, and that is large enough for an index."""
    size_bytes = to_numpy(segments["size_bytes"])[bounds.segment]
    is_indexed = to_numpy(segments["index_bytes"])[bounds.segment] > 0
    is_indexed &= size_bytes > index_narrowing.MAX_UNINDEXED_BYTES
    is_part = bounds.start_offset > to_numpy(segments["base_offset"])[bounds.segment]
    is_part |= bounds.end_offset < to_numpy(segments["next_offset"])[bounds.segment]
    mask: Mask = is_indexed & is_part
    return mask


def _narrow_by_indexes(
    log: CommittedPartition,
    segments: pa.Table,
    bounds: _SliceBounds,
    columns: dict[str, Longs],
    numbers: Longs,
) -> list[int]:
    """Read the indexes of segments; return the start positions of all slices."""
    start_position = np.zeros(len(bounds.segment), np.int64)
    entries = segments.take(from_numpy(numbers)).to_pylist()

    def read(entry: dict[str, Any]) -> Any:
        return read_segment_index(
            log.root.store,
            index_file_path(log.root.segment_path(entry), "index"),
            entry["index_bytes"],
            entry["base_offset"] - entry["offset_shift"],
            entry["size_bytes"],
        )

    indexes = read_in_order(read, entries, log.root.store.max_parallel_reads)
    for number, entry, index in zip(numbers.tolist(), entries, indexes, strict=True):
        if index is None:
            continue
        shift, size_bytes = entry["offset_shift"], entry["size_bytes"]
        for row in np.flatnonzero(bounds.segment == number).tolist():
            start, end = positions_between(
                index,
                size_bytes,
                int(bounds.start_offset[row]) - shift,
                int(bounds.end_offset[row]) - shift - 1,
            )
            start_position[row], columns["end_position"][row] = start, end
            columns["first_offset"][row], columns["crc32c"][row] = index_narrowing.range_facts(
                start,
                end,
                size_bytes,
                int(columns["first_offset"][row]),
                int(columns["crc32c"][row]),
            )
    positions: list[int] = start_position.tolist()
    return positions


def _aborted(segments: pa.Table, bounds: _SliceBounds) -> list[list[list[int]]]:
    """Return the aborted transactions of each slice; a segment that has any is not shifted."""
    entries = segments.select(["aborted"]).to_pylist()
    aborted_by_segment = [segment_entries.aborted_transactions(entry) for entry in entries]
    return [
        [
            list(transaction)
            for transaction in aborted_by_segment[number]
            if transaction.last_offset >= start and transaction.first_offset < end
        ]
        for number, start, end in zip(
            bounds.segment.tolist(),
            bounds.start_offset.tolist(),
            bounds.end_offset.tolist(),
            strict=True,
        )
    ]
