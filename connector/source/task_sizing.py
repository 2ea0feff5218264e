"""How many bytes a task gets.

The rule: about 64 MiB, more if a read would have more than 10,000 tasks, less if the user asks for
more tasks by `minPartitions`, and what `maxBytesPerPartition` says. Neighbouring slices share a
task as long as they stay within that together; a slice that alone is larger has a task of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from klog.connector.options.option_defaults import TARGET_BYTES
from klog.connector.options.read_options import TaskLimits
from klog.connector.source.slices import Slice

MAX_TASKS = 10_000
"""A driver holds them all: each task of a larger read has more than its share."""


def target_bytes(total_bytes: int, range_count: int, limits: TaskLimits) -> int:
    """Return how many bytes a task gets.

    Args:
        total_bytes: Bytes of the segments that the read may have to look at.
        range_count: Offset ranges of the read, which are tasks of their own anyway.
        limits: The tasks that the user asks for.
    """
    target = limits.max_bytes or max(TARGET_BYTES, total_bytes // MAX_TASKS)
    if limits.min_tasks > range_count:
        target = max(min(target, -(-total_bytes // limits.min_tasks)), 1)
    return target


def pack(sizes: Sequence[int] | npt.NDArray[np.int64], target: int) -> list[tuple[int, int]]:
    """Return the runs of neighbouring slices that make a task each, as (first, end) numbers.

    Args:
        sizes: Bytes of each slice, in order.
        target: Bytes that a task gets.
    """
    ends = np.cumsum(sizes)
    runs: list[tuple[int, int]] = []
    first = 0
    while first < len(ends):
        size_before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, size_before + target, "right")), first + 1)
        runs.append((first, end))
        first = end
    return runs


def split_by_offset(slices: Sequence[Slice], min_slices: int) -> list[Slice]:
    """Halve the slices with the most offsets until there are enough.

    The halves share a byte range. A slice of one offset is not halved.

    Args:
        slices: The slices.
        min_slices: How many slices are enough.
    """
    heap = [(-slice_.offset_count, number, slice_) for number, slice_ in enumerate(slices)]
    heapq.heapify(heap)
    number = len(heap)
    while heap and len(heap) < min_slices and -heap[0][0] > 1:
        _, _, slice_ = heapq.heappop(heap)
        middle = slice_.start_offset + slice_.offset_count // 2
        for half in (replace(slice_, end_offset=middle), replace(slice_, start_offset=middle)):
            heapq.heappush(heap, (-half.offset_count, number, half))
            number += 1
    halves = [slice_ for _, _, slice_ in heap]
    return sorted(halves, key=lambda half: (half.topic, half.partition, half.start_offset))
