"""The slices of a raw partition: what its files say, cut at index entries.

The rule: an index is a hint. Cuts lie where the batch headers confirm it, so a slice begins at a
batch of known offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from klog.connector.log.directory import Segment
from klog.connector.log.partition import RawPartition
from klog.connector.log.segment import SegmentReader
from klog.connector.log.txnindexes import aborted_by_indexes
from klog.connector.source.ranges import OffsetRange
from klog.connector.source.slices import WHOLE_BYTES, Slice, Task, span
from klog.errors import CorruptRecordError


def size_bytes(r: OffsetRange, log: RawPartition) -> int:
    """Give the bytes of the segments that a range may have to read."""
    return sum(segment.log.size_bytes for segment, _ in _overlapping(r, log))


def tasks(r: OffsetRange, log: RawPartition, target: int) -> list[Task]:
    """Plan a range of a raw partition: lists of slices of about `target` bytes each.

    Raises `FileNotFoundError` if the whole root has to be listed again.
    """
    return log.retry_stale(lambda now: _tasks(r, now, target))


def _tasks(r: OffsetRange, log: RawPartition, target: int) -> list[Task]:
    if log.log_start > max(r.start, r.log.log_start):
        raise FileNotFoundError(f"{log.name}: the log starts at offset {log.log_start} by now")
    aborted = aborted_by_indexes(log, r.start, r.end) if r.committed_only else []
    slices: list[Slice] = []
    for segment, next_base in _overlapping(r, log):
        slices.extend(_cut(r, log, segment, next_base, target, aborted))
    return _packed(slices, target)


def _overlapping(r: OffsetRange, log: RawPartition) -> list[tuple[Segment, int]]:
    """Give the segments that may hold wanted offsets, each with the offset behind it."""
    return [
        (segment, behind)
        for segment, behind in log.bounded_segments()
        if segment.base_offset < r.end and behind > r.start
    ]


def _cut(
    r: OffsetRange,
    log: RawPartition,
    segment: Segment,
    next_base: int,
    target: int,
    aborted: list[list[int]],
) -> Iterator[Slice]:
    reader = log.open(segment)
    try:
        readable = log.readable_bytes(reader)
        common = {
            "topic": r.log.name.topic,
            "partition": r.log.name.partition,
            "root": log.root,
            "path": segment.log.path,
            "topic_id": r.log.topic_id,
            "identity": reader.file.identity,
            "stamp": "" if log.is_active(segment) else reader.file.stamp,
            "base_offset": segment.base_offset,
            "offset_shift": 0,
            "file_bytes": -1,
            "torn_bytes": 0,
            "index_bytes": -1,
            "crc32c": -1,
            "committed_only": r.committed_only,
            "markers_until": max(r.log.log_end, r.end) if r.committed_only else -1,
            "aborted": [a for a in aborted if a[2] >= segment.base_offset and a[1] < next_base],
        }
        for (begin, first), (end, behind) in pairwise(_cuts(reader, r, log, readable, target)):
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


def _cuts(
    reader: SegmentReader, r: OffsetRange, log: RawPartition, readable: int, target: int
) -> list[tuple[int, int]]:
    """Give (position, base offset there) of each cut, from the first byte wanted to the last."""
    base = reader.segment.base_offset
    whole = r.start <= base and r.end >= log.end.next_offset and readable <= target
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


def _packed(slices: list[Slice], target: int) -> list[Task]:
    """Put neighbouring slices into one task as long as they stay within the target together."""
    packed: list[Task] = []
    room = 0
    for piece in slices:
        size = piece["end"] - piece["begin"]
        if size <= 0 or span(piece) <= 0:
            continue
        if not packed or size > room:
            packed.append([])
            room = target
        packed[-1].append(piece)
        room -= size
    return packed
