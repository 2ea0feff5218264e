"""Offset ranges to slices: byte ranges of segments, cut at index entries, balanced by bytes.

A slice is a plain dict, because Spark carries it:

    topic, partition           of the records
    root, topic_id             the log directory, as it was given, and whose topic it is
    path, identity, stamp      of the file the slice lies in, as planned; no stamp while it grows
    base_offset                of the segment
    begin, end                 positions: the bytes to read
    first_offset               first offset of the batch at `begin`, -1 where that is unknown
    start_offset, end_offset   the records wanted, end exclusive
    limit_offset               behind every offset that may stand in these bytes
    aborted                    transactions that a `.txnindex` calls aborted, each a list:
                               [producer id, first offset, offset of the marker]
    markers_until              the log end, before which lies the marker of each transaction that
                               is decided; -1 to read all transactions

Cuts lie where the batch headers confirm the index, so a slice begins at a batch of known offset.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from klog.connector.log.directory import Segment
from klog.connector.log.segment import SegmentReader
from klog.connector.source.ranges import OffsetRange
from klog.errors import CorruptRecordError
from klog.logformat.transaction_index import read_aborted

Slice: TypeAlias = dict[str, Any]

TARGET_BYTES = 64 << 20
"""A task's share: some seconds of decoding, and small beside a segment."""
WHOLE_BYTES = 256 << 10
"""Up to here a segment is read whole rather than looked up in its index."""


class ChangedError(Exception):
    """The bytes under a slice are no longer those that were planned."""


def plan(ranges: list[OffsetRange], min_tasks: int = 0) -> list[list[Slice]]:
    """Give the tasks of a read: each a list of slices of one partition, in order.

    At least `min_tasks` of them, unless there are fewer offsets. Raises `CorruptFileError` where a
    segment cannot be planned, `FileNotFoundError` where one has gone.
    """
    total = sum(segment.log.size_bytes for r in ranges for segment, _ in _overlapping(r))
    target = TARGET_BYTES
    if min_tasks > len(ranges):
        target = max(min(target, -(-total // min_tasks)), 1)
    tasks: list[list[Slice]] = []
    for r in ranges:
        aborted = _aborted(r) if r.committed_only else []
        slices: list[Slice] = []
        for segment, next_base in _overlapping(r):
            slices.extend(_cut(r, segment, next_base, target, aborted))
        tasks.extend(_packed(slices, target))
    if len(tasks) < min_tasks:
        tasks = [[piece] for piece in _split_by_offset([s for t in tasks for s in t], min_tasks)]
    return tasks


def _overlapping(r: OffsetRange) -> list[tuple[Segment, int]]:
    """Give the segments that may hold wanted offsets, each with the offset behind it."""
    return [
        (segment, behind)
        for segment, behind in r.log.bounded_segments()
        if segment.base_offset < r.end and behind > r.start
    ]


def _cut(
    r: OffsetRange, segment: Segment, next_base: int, target: int, aborted: list[list[int]]
) -> Iterator[Slice]:
    reader = r.log.open(segment)
    try:
        readable = r.log.readable_bytes(reader)
        common = {
            "topic": r.log.name.topic,
            "partition": r.log.name.partition,
            "root": r.log.root,
            "path": segment.log.path,
            "topic_id": r.log.topic_id,
            "identity": reader.file.identity,
            "stamp": "" if r.log.is_active(segment) else reader.file.stamp,
            "base_offset": segment.base_offset,
            "markers_until": max(r.log.log_end, r.end) if r.committed_only else -1,
            "aborted": [a for a in aborted if a[2] >= segment.base_offset and a[1] < next_base],
        }
        for (begin, first), (end, behind) in pairwise(_cuts(reader, r, readable, target)):
            yield common | {
                "begin": begin,
                "end": end,
                "first_offset": first,
                "start_offset": max(r.start, first, segment.base_offset),
                "end_offset": min(r.end, next_base if behind < 0 else behind),
                "limit_offset": next_base if behind < 0 else behind,
            }
    except CorruptRecordError as exc:
        raise exc.in_file(segment.log.path, str(r.log.name)) from exc
    finally:
        reader.close()


def _split_by_offset(slices: list[Slice], wanted: int) -> list[Slice]:
    """Halve the slices of most offsets until there are `wanted`: their tasks share bytes."""
    heap = [(-_span(piece), number, piece) for number, piece in enumerate(slices)]
    heapq.heapify(heap)
    number = len(heap)
    while heap and len(heap) < wanted and -heap[0][0] > 1:
        _, _, piece = heapq.heappop(heap)
        middle = piece["start_offset"] + _span(piece) // 2
        for half in (piece | {"end_offset": middle}, piece | {"start_offset": middle}):
            heapq.heappush(heap, (-_span(half), number, half))
            number += 1
    pieces = [piece for _, _, piece in heap]
    return sorted(pieces, key=lambda p: (p["topic"], p["partition"], p["start_offset"]))


def _span(piece: Slice) -> int:
    return int(piece["end_offset"] - piece["start_offset"])


def _cuts(
    reader: SegmentReader, r: OffsetRange, readable: int, target: int
) -> list[tuple[int, int]]:
    """Give (position, base offset there) of each cut, from the first byte wanted to the last."""
    base = reader.segment.base_offset
    whole = r.start <= base and r.end >= r.log.end.next_offset and readable <= target
    if whole or readable <= min(WHOLE_BYTES, target):
        return [(0, -1), (readable, -1)]
    cuts = _indexed_cuts(reader, r, readable, target)
    if cuts is None:
        reader.replace_index()
        cuts = _indexed_cuts(reader, r, readable, target) or [(0, -1), (readable, -1)]
    return cuts


def _indexed_cuts(
    reader: SegmentReader, r: OffsetRange, readable: int, target: int
) -> list[tuple[int, int]] | None:
    """Cut at index entries about `target` bytes apart; None if a batch does not confirm one."""
    index = reader.index()
    begin, end = index.position_before(r.start), _end_position(reader, r.end, readable)
    if end is None:
        return None
    pieces = max(-(-(end - begin) // target), 1)
    ideal = begin + np.arange(1, pieces) * ((end - begin) / pieces)
    entries = np.unique(np.searchsorted(index.positions, ideal))
    positions = [begin, *(int(p) for p in index.positions[entries[entries < len(index.positions)]])]
    cuts: list[tuple[int, int]] = []
    for position in sorted(set(positions)):
        if begin <= position < end:
            first = reader.cut_at(position)
            if first is None:
                return None
            cuts.append((position, first))
    if begin and cuts and cuts[0][1] > r.start:
        return None
    return [*cuts, (end, -1)]


def _end_position(reader: SegmentReader, end_offset: int, readable: int) -> int | None:
    """Give a position behind every batch that begins below `end_offset`.

    None if the batch at the position that the index gives begins below it.
    """
    index = reader.index()
    entry = int(np.searchsorted(index.offsets, end_offset - 1, "left")) + 1
    if entry >= len(index.positions) or int(index.positions[entry]) >= readable:
        return readable
    position = int(index.positions[entry])
    first = reader.cut_at(position)
    return None if first is None or first < end_offset else position


def _aborted(r: OffsetRange) -> list[list[int]]:
    """Read what the transaction indexes say of the range; a malformed one says nothing."""
    found: list[list[int]] = []
    for segment, end in r.log.bounded_segments():
        if end <= r.start:
            continue
        entry = segment.indexes.get("txnindex")
        if entry is None:
            continue
        try:
            entries = read_aborted(r.log.store.read(entry.path), segment.base_offset, end)
        except FileNotFoundError:
            continue
        if entries is not None:
            wanted = (entries.last_offsets >= r.start) & (entries.first_offsets < r.end)
            rows = (entries.producer_ids, entries.first_offsets, entries.last_offsets)
            found.extend(map(list, zip(*(row[wanted].tolist() for row in rows), strict=True)))
    return found


def _packed(slices: list[Slice], target: int) -> list[list[Slice]]:
    """Put neighbouring slices into one task as long as they stay within the target together."""
    tasks: list[list[Slice]] = []
    room = 0
    for piece in slices:
        size = piece["end"] - piece["begin"]
        if size <= 0 or _span(piece) <= 0:
            continue
        if not tasks or size > room:
            tasks.append([])
            room = target
        tasks[-1].append(piece)
        room -= size
    return tasks
