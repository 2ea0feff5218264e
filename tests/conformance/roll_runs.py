"""Cases of log rolling: which segment each append goes to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.indexes.index_building import Appends, batches_as_appends
from klog.logformat.segments.segment_rolling import (
    OpenSegment,
    RollLimits,
    RollPlan,
    max_segment_ms,
    plan_rolls,
)
from tests.conformance.segment_runs import Batch, encode_all


def rolls_when_empty(base: int, appended: Sequence[tuple[int, int, int]]) -> list[bool]:
    """Return for (last offset, timestamp, now) whether an empty segment rolls before it."""
    segment = OpenSegment(base, base)
    limits = RollLimits(segment_bytes=1000, segment_ms=10_000)
    return [segment.should_roll(100, last, ts, limits, now) for last, ts, now in appended]


def first_timestamp(timestamps: Sequence[int]) -> int:
    segment = OpenSegment(0, 0)
    for offset, timestamp in enumerate(timestamps):
        segment.append(100, offset, timestamp, RollLimits())
    return segment.first_timestamp_ms


def one_record_appends(offsets: Sequence[int]) -> Appends:
    at: Longs = np.array(offsets, np.int64)
    return Appends(np.full(len(at), 100), at, at, np.full(len(at), -1), at)


def rolled(
    segment: tuple[int, int, int], offsets: Sequence[int], index_bytes: int = 1 << 20
) -> list[tuple[int, int]]:
    """Roll a segment (base, end offset, size); return (append, base offset) of each."""
    base, end, size = segment
    limits = RollLimits(segment_bytes=150, segment_index_bytes=index_bytes)
    plan = plan_rolls(one_record_appends(offsets), OpenSegment(base, end, size_bytes=size), limits)
    return list(zip(plan.starts.tolist(), plan.base_offsets.tolist(), strict=True))


def segments_of_offsets(offsets: Sequence[int]) -> list[int]:
    """Return the number of the first append of each segment, rolled for offsets alone."""
    plan = plan_rolls(one_record_appends(offsets), OpenSegment(0, 0), RollLimits())
    return plan.starts.tolist()  # type: ignore[no-any-return]


def rolled_by_time(
    appended: Sequence[tuple[int, int]], segment_ms: int, jitter_ms: int = 0
) -> list[int]:
    """Append a record for each (timestamp, clock) to an empty log; return its segments' bases."""
    rows: Longs = np.array(appended, np.int64)
    at = np.arange(len(rows))
    appends = Appends(np.full(len(rows), 100), at, at, rows[:, 0], at)
    limits = RollLimits(
        segment_ms=max_segment_ms(segment_ms, 0, compacts=False, jitter_ms=jitter_ms)
    )
    return _bases(plan_rolls(appends, OpenSegment(0, 0), limits, rows[:, 1]))


def rolled_by_size(sizes: Sequence[int], segment_bytes: int) -> list[int]:
    at = np.arange(len(sizes))
    appends = Appends(np.array(sizes), at, at, np.full(len(sizes), -1), at)
    return _bases(plan_rolls(appends, OpenSegment(0, 0), RollLimits(segment_bytes=segment_bytes)))


def rolled_by_offsets(data: bytes) -> list[int]:
    """Roll with each batch as an append of a follower, which keeps its offsets."""
    appends = batches_as_appends(scan_batches(data, 0, len(data)))
    return _bases(plan_rolls(appends, OpenSegment(0, 0), RollLimits()))


def first_offsets(batches: Sequence[Batch], segment_batches: int) -> list[tuple[int, int]]:
    """Append batches of one size: (first offset, base offset of its segment) of each."""
    data = encode_all(batches)
    appends = batches_as_appends(scan_batches(data, 0, len(data)))
    limits = RollLimits(segment_bytes=segment_batches * len(data) // len(batches))
    plan = plan_rolls(appends, OpenSegment(0, 0), limits)
    number = np.searchsorted(plan.starts, np.arange(len(appends)), "right") - 1
    rows = zip(appends.first_offsets.tolist(), plan.base_offsets[number].tolist(), strict=True)
    return list(rows)


def _bases(plan: RollPlan) -> list[int]:
    return [int(base) for base in plan.base_offsets]
