"""Truncate a partition to an offset, as a follower does before it follows (format notes 8.1, 8.2).

What lies at or behind the offset goes: segments, the batches that reach it, entries of the indexes
and leader epochs; producers are loaded anew from the newest snapshot before it. (Kafka's
`UnifiedLog.truncateTo` and `truncateFullyAndStartAt`.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from klog.logformat.cutting import position_before
from klog.logformat.epochs import NO_EPOCHS
from klog.logformat.listing import LOG
from klog.logformat.partition import INDEX, TIME_INDEX, TRANSACTION_INDEX, Partition
from klog.logformat.producers import ProducerState
from klog.logformat.replay import reload_producers
from klog.logformat.segment_recovery import scan_to_fault

_ENTRIES = {
    INDEX: np.dtype([("offset", ">i4"), ("", "V4")]),
    TIME_INDEX: np.dtype([("", "V8"), ("offset", ">i4")]),
    TRANSACTION_INDEX: np.dtype([("", "V18"), ("offset", ">i8"), ("stable", ">i8")]),
}


def truncate(partition: Partition, offset: int, now_ms: int | None = None) -> Partition:
    """Let the partition end at `offset`, or before it where it did; `now_ms` expires producers.

    An offset below the first segment empties the partition and lets it begin there. Raises
    `ValueError` for a negative offset.
    """
    if offset < 0:
        raise ValueError(f"a log cannot be truncated to offset {offset}")
    if offset >= partition.log_end:
        epochs = partition.epochs.truncate_from_end(partition.log_end)
        return replace(partition, epochs=epochs)
    if offset < min(partition.segments):
        return emptied(offset)
    segments = {base: files for base, files in partition.segments.items() if base <= offset}
    last = max(segments)
    segments[last] = _truncated(segments[last], last, offset)
    start = min(partition.log_start, offset)
    logs = {base: files[LOG] for base, files in segments.items()}
    reloaded = reload_producers(logs, partition.snapshots, start, offset, now_ms=now_ms)
    return Partition(
        segments,
        reloaded.snapshots,
        partition.epochs.truncate_from_end(offset),
        reloaded.producers,
        start,
        offset,
    )


def emptied(offset: int) -> Partition:
    """Give a partition without records that begins, and ends, at `offset`."""
    files = {LOG: b"", INDEX: b"", TIME_INDEX: b""}
    return Partition({offset: files}, {}, NO_EPOCHS, ProducerState(offset), offset, offset)


def _truncated(files: dict[str, bytes], base_offset: int, offset: int) -> dict[str, bytes]:
    log = files[LOG]
    batches, _ = scan_to_fault(log)
    kept = {LOG: log[: position_before(batches, offset)]}
    for suffix, dtype in _ENTRIES.items():
        if suffix not in files:
            continue
        whole = len(files[suffix]) // dtype.itemsize * dtype.itemsize
        entries = np.frombuffer(files[suffix][:whole], dtype)["offset"].astype(np.int64)
        limit = offset if suffix == TRANSACTION_INDEX else offset - base_offset
        # Entries rise: the first at or behind the offset ends what is kept.
        reached = np.flatnonzero(entries >= limit)
        count = int(reached[0]) if len(reached) else len(entries)
        kept[suffix] = files[suffix][: count * dtype.itemsize]
    return kept
