"""Offset ranges to tasks: lists of slices, balanced by bytes."""

from __future__ import annotations

import heapq

from klog.connector.log.committed import CommittedPartition
from klog.connector.log.partition import RawPartition
from klog.connector.source import committed_plan, raw_plan
from klog.connector.source.ranges import OffsetRange
from klog.connector.source.slices import MOST_TASKS, TARGET_BYTES, Slice, Task, expanded, span


def plan(ranges: list[OffsetRange], min_tasks: int = 0, *, by_index: bool = True) -> list[Task]:
    """Give the tasks of a read: each a list of slices of one partition, in order.

    At least `min_tasks` of them, unless there are fewer offsets. Raises `CorruptFileError` where a
    segment cannot be planned, `FileNotFoundError` where one has gone. Without `by_index` no index
    of a committed segment is believed.
    """
    total = sum(map(_bytes, ranges))
    target = max(TARGET_BYTES, total // MOST_TASKS)
    if min_tasks > len(ranges):
        target = max(min(target, -(-total // min_tasks)), 1)
    tasks = [task for r in ranges for task in _tasks(r, target, by_index=by_index)]
    if len(tasks) < min_tasks:
        slices = [piece for task in tasks for piece in expanded(task)]
        tasks = [[piece] for piece in _split_by_offset(slices, min_tasks)]
    return tasks


def _bytes(r: OffsetRange) -> int:
    if isinstance(r.log, CommittedPartition):
        return committed_plan.size_bytes(r, r.log)
    assert isinstance(r.log, RawPartition)
    return raw_plan.size_bytes(r, r.log)


def _tasks(r: OffsetRange, target: int, *, by_index: bool) -> list[Task]:
    if isinstance(r.log, CommittedPartition):
        return committed_plan.tasks(r, r.log, target, by_index=by_index)
    assert isinstance(r.log, RawPartition)
    return raw_plan.tasks(r, r.log, target)


def _split_by_offset(slices: list[Slice], wanted: int) -> list[Slice]:
    """Halve the slices of most offsets until there are `wanted`: their tasks share bytes."""
    heap = [(-span(piece), number, piece) for number, piece in enumerate(slices)]
    heapq.heapify(heap)
    number = len(heap)
    while heap and len(heap) < wanted and -heap[0][0] > 1:
        _, _, piece = heapq.heappop(heap)
        middle = piece["start_offset"] + span(piece) // 2
        for half in (piece | {"end_offset": middle}, piece | {"start_offset": middle}):
            heapq.heappush(heap, (-span(half), number, half))
            number += 1
    pieces = [piece for _, _, piece in heap]
    return sorted(pieces, key=lambda p: (p["topic"], p["partition"], p["start_offset"]))
