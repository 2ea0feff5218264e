"""The slices of a committed partition: a filter over its segments. Nothing is read.

The rule: a slice wants a range of offsets of one segment; one that is larger than a task's share is
wanted in several, of equal numbers of offsets. Where in the file they lie, the task finds out by
the segment's index (`indexed.py`). Segments never become Python objects one by one: a task's slices
are one run of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import entries
from klog.connector.log.committed import CommittedPartition
from klog.connector.source.ranges import OffsetRange
from klog.connector.source.slices import EACH, Task
from klog.logformat.index import Longs


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Slices, a row each: the segment by its row, offsets of the log, about how many bytes."""

    segment: Longs
    start: Longs
    stop: Longs
    size_bytes: Longs


def size_bytes(r: OffsetRange, log: CommittedPartition) -> int:
    """Give the bytes of the segments that a range may have to read."""
    return int(pc.sum(log.overlapping(r.start, r.end)["size_bytes"]).as_py() or 0)


def tasks(
    r: OffsetRange, log: CommittedPartition, target: int, *, by_index: bool = True
) -> list[Task]:
    """Plan a range: tasks of about `target` bytes each. Without `by_index` no index is believed."""
    segments = log.overlapping(r.start, r.end)
    base, behind = segments["base_offset"].to_numpy(), segments["next_offset"].to_numpy()
    start, stop = np.maximum(base, r.start), np.minimum(behind, r.end)
    wanted = segments["size_bytes"].to_numpy() * ((stop - start) / (behind - base))
    counts = np.clip(np.ceil(wanted / target), 1, stop - start).astype(np.int64)
    segment = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = ((stop - start) / counts)[segment]
    first = start[segment] + np.floor(number * step).astype(np.int64)
    is_last = number == counts[segment] - 1
    last = np.where(is_last, stop[segment], np.append(first[1:], 0))
    pieces = _Pieces(segment, first, last, (wanted / counts)[segment].astype(np.int64))
    return _packed(
        log, segments, pieces, target, committed_only=r.committed_only, by_index=by_index
    )


def _packed(
    log: CommittedPartition,
    segments: pa.Table,
    pieces: _Pieces,
    target: int,
    *,
    committed_only: bool,
    by_index: bool,
) -> list[Task]:
    """Put neighbouring slices into one task as long as they stay within the target together."""
    shared = {
        "topic": log.name.topic,
        "partition": log.name.partition,
        "root": log.root.given,
        "topic_id": log.topic_id,
        "identity": "",
        "stamp": "",
        "begin": 0,
        "committed_only": committed_only,
        "aborted": [],
        "markers_until": -1,
    }
    each = _columns(log, segments, pieces, by_index=by_index)
    if committed_only and not entries.are_plain(segments):
        each["aborted"] = _aborted(segments, pieces)
    reached = np.cumsum(pieces.size_bytes)
    made: list[Task] = []
    row = 0
    while row < len(reached):
        before = int(reached[row - 1]) if row else 0
        behind = max(int(np.searchsorted(reached, before + target, "right")), row + 1)
        columns = {name: values[row:behind] for name, values in each.items()}
        made.append([shared | {EACH: columns}])
        row = behind
    return made


def _aborted(segments: pa.Table, pieces: _Pieces) -> list[list[list[int]]]:
    """Give the aborted transactions of each slice."""
    said = segments.select(["aborted"]).to_pylist()
    rows = [[list(one) for one in entries.aborted_of(entry)] for entry in said]
    return [rows[number] for number in pieces.segment.tolist()]


def _columns(
    log: CommittedPartition, segments: pa.Table, pieces: _Pieces, *, by_index: bool
) -> dict[str, list[Any]]:
    """Give the fields of slices in which they differ, a list each."""
    segment = pieces.segment
    taken = {
        name: segments[name].to_numpy()[segment]
        for name in (
            "base_offset", "next_offset", "offset_shift", "size_bytes", "torn_bytes",
            "index_bytes", "crc32c",
        )
    }  # fmt: skip
    base, shift = taken["base_offset"], taken["offset_shift"]
    # A segment that was compacted or merged may begin behind its base offset.
    appended = pc.equal(segments["origin"], "append").to_numpy()[segment]
    directory = f"{log.root.path}/"
    paths = pc.binary_join_element_wise(directory, segments["file"], "").combine_chunks()
    return {
        "path": paths.take(pa.array(segment)).to_pylist(),
        "base_offset": (base - shift).tolist(),
        "offset_shift": shift.tolist(),
        "file_bytes": taken["size_bytes"].tolist(),
        "torn_bytes": taken["torn_bytes"].tolist(),
        "index_bytes": (taken["index_bytes"] if by_index else taken["index_bytes"] * 0).tolist(),
        "crc32c": taken["crc32c"].tolist(),
        "end": taken["size_bytes"].tolist(),
        "first_offset": np.where(appended, base - shift, -1).tolist(),
        "start_offset": pieces.start.tolist(),
        "end_offset": pieces.stop.tolist(),
        "limit_offset": (taken["next_offset"] - shift).tolist(),
    }
