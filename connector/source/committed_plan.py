"""The slices of a committed partition: a filter over its segments, and an index for the edges.

The rule: a segment that is wanted whole, and is no larger than a task's share, is a slice without
anything being read. One that is wanted in part, or is larger, is cut at its offset index, one read
each; where it has none, or a malformed one, it is read from its start. Segments never become
Python objects one by one: a task's slices are one run of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import lookup
from klog.connector.log.committed import CommittedPartition
from klog.connector.source.ranges import OffsetRange
from klog.connector.source.slices import EACH, WHOLE_BYTES, Task
from klog.logformat.index import Longs
from klog.logformat.offset_index import OffsetIndex


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Slices of a list of segments, a row each: offsets are the log's, positions of bytes."""

    segment: Longs
    start: Longs
    stop: Longs
    begin: Longs
    end: Longs


def size_bytes(r: OffsetRange, log: CommittedPartition) -> int:
    """Give the bytes of the segments that a range may have to read."""
    return int(pc.sum(log.overlapping(r.start, r.end)["size_bytes"]).as_py() or 0)


def tasks(
    r: OffsetRange, log: CommittedPartition, target: int, *, by_index: bool = True
) -> list[Task]:
    """Plan a range: tasks of about `target` bytes each. Without `by_index` nothing is read."""
    segments = log.overlapping(r.start, r.end)
    sizes = segments["size_bytes"].to_numpy()
    base, behind = segments["base_offset"].to_numpy(), segments["next_offset"].to_numpy()
    edge = (base < r.start) | (behind > r.end) | (sizes > target)
    edge &= (sizes > WHOLE_BYTES) & (segments["index_bytes"].to_numpy() > 0)
    rows = np.arange(len(sizes))
    parts = [_Pieces(rows, np.maximum(base, r.start), np.minimum(behind, r.end), rows * 0, sizes)]
    for row in np.flatnonzero(edge).tolist() if by_index else ():
        entry = segments.slice(row, 1).to_pylist()[0]
        index = lookup.read_index(log.root, entry)
        if index is not None and len(index):
            parts.append(_cut(r, row, entry, index, target))
    return _packed(r, log, segments, _joined(parts), target)


def _cut(
    r: OffsetRange, row: int, entry: dict[str, Any], index: OffsetIndex, target: int
) -> _Pieces:
    """Cut a segment behind appends that its index names, about `target` bytes apart.

    An entry says where an append begins and its last offset, so that the offset behind it is the
    cut; the slices on both sides read that append.
    """
    shift = entry["offset_shift"]
    start, stop = max(r.start, entry["base_offset"]), min(r.end, entry["next_offset"])
    positions = np.append(index.positions, entry["size_bytes"])
    first, last = np.searchsorted(index.offsets, (start - shift, stop - 1 - shift), "left").tolist()
    begin, end = (
        int(positions[first - 1]) if first else 0,
        int(positions[min(last + 1, len(index))]),
    )
    count = max(-(-(end - begin) // target), 1)
    ideal = begin + np.arange(1, count) * ((end - begin) / count)
    cuts = np.unique(np.searchsorted(index.positions, ideal))
    bounds = index.offsets[cuts[cuts < len(index)]] + 1 + shift
    bounds = bounds[(bounds > start) & (bounds < stop)]
    starts, stops = np.append(start, bounds), np.append(bounds, stop)
    before = np.searchsorted(index.offsets, starts - shift, "left")
    behind = np.searchsorted(index.offsets, stops - 1 - shift, "left") + 1
    return _Pieces(
        np.full(len(starts), row),
        starts,
        stops,
        np.where(before > 0, positions[before - 1], 0),
        positions[np.minimum(behind, len(index))],
    )


def _joined(parts: list[_Pieces]) -> _Pieces:
    """Put the pieces of cut segments in the place of the whole ones, which come first."""
    whole, *cut = parts
    if not cut:
        return whole
    kept = ~np.isin(whole.segment, [part.segment[0] for part in cut])
    columns = [
        np.concatenate([getattr(whole, name)[kept], *(getattr(part, name) for part in cut)])
        for name in _Pieces.__slots__
    ]
    order = np.lexsort((columns[1], columns[0]))
    return _Pieces(*(column[order] for column in columns))


def _packed(
    r: OffsetRange,
    log: CommittedPartition,
    segments: pa.Table,
    pieces: _Pieces,
    target: int,
) -> list[Task]:
    """Put neighbouring slices into one task as long as they stay within the target together."""
    shared = {
        "topic": log.name.topic,
        "partition": log.name.partition,
        "root": log.root.given,
        "topic_id": log.topic_id,
        "identity": "",
        "stamp": "",
        "aborted": [],
        "markers_until": -1,
    }
    each = _columns(r, log, segments, pieces)
    reached = np.cumsum(pieces.end - pieces.begin)
    made: list[Task] = []
    row = 0
    while row < len(reached):
        before = int(reached[row - 1]) if row else 0
        behind = max(int(np.searchsorted(reached, before + target, "right")), row + 1)
        made.append([shared | {EACH: {name: values[row:behind] for name, values in each.items()}}])
        row = behind
    return made


def _columns(
    r: OffsetRange, log: CommittedPartition, segments: pa.Table, pieces: _Pieces
) -> dict[str, list[Any]]:
    """Give the fields of slices in which they differ, a list each."""
    segment, begin, end = pieces.segment, pieces.begin, pieces.end
    taken = {
        name: segments[name].to_numpy()[segment]
        for name in ("base_offset", "next_offset", "offset_shift", "size_bytes", "crc32c")
    }
    base, shift = taken["base_offset"], taken["offset_shift"]
    is_whole = (begin == 0) & (end == taken["size_bytes"])
    # A segment that was compacted or merged may begin behind its base offset.
    appended = pc.equal(segments["origin"], "append").to_numpy()[segment]
    directory = f"{log.root.path}/"
    paths = pc.binary_join_element_wise(directory, segments["file"], "").combine_chunks()
    return {
        "path": paths.take(pa.array(segment)).to_pylist(),
        "base_offset": (base - shift).tolist(),
        "offset_shift": shift.tolist(),
        "file_bytes": taken["size_bytes"].tolist(),
        "crc32c": np.where(is_whole, taken["crc32c"], -1).tolist(),
        "begin": begin.tolist(),
        "end": end.tolist(),
        "first_offset": np.where((begin == 0) & appended, base - shift, -1).tolist(),
        "start_offset": pieces.start.tolist(),
        "end_offset": pieces.stop.tolist(),
        "limit_offset": (taken["next_offset"] - shift).tolist(),
    }
