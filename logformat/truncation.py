"""Truncate a partition to an offset, as a follower does before it follows.

What lies at or behind the offset goes: segments, the batches that reach it, entries of the indexes
and leader epochs; producers are loaded anew from the newest snapshot before it.
(docs/format.md, 12 and 14; Kafka's `UnifiedLog.truncateTo` and `truncateFullyAndStartAt`.)
"""

from __future__ import annotations

from dataclasses import replace

from klog.logformat import offset_index, time_index, transaction_index
from klog.logformat.cutting import position_before
from klog.logformat.epochs import NO_EPOCHS
from klog.logformat.listing import LOG
from klog.logformat.partition import INDEX, TIME_INDEX, TRANSACTION_INDEX, Partition
from klog.logformat.producers import ProducerState
from klog.logformat.replay import reload_producers
from klog.logformat.segment_recovery import scan_to_fault

_ENTRY_BYTES = {
    INDEX: offset_index.ENTRY.itemsize,
    TIME_INDEX: time_index.ENTRY.itemsize,
    TRANSACTION_INDEX: transaction_index.ENTRY.itemsize,
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
    # The files are cut, not written anew: a broker believes them, so they may hold anything.
    for suffix, entry_bytes in _ENTRY_BYTES.items():
        if suffix in files:
            count = _entries_below(suffix, files[suffix], base_offset, offset)
            kept[suffix] = files[suffix][: count * entry_bytes]
    return kept


def _entries_below(suffix: str, data: bytes, base_offset: int, offset: int) -> int:
    if suffix == INDEX:
        return len(offset_index.decode_offset_index(data, base_offset).truncated_to(offset))
    if suffix == TIME_INDEX:
        return len(time_index.decode_time_index(data, base_offset).truncated_to(offset))
    return len(transaction_index.decode_aborted(data).truncated_to(offset))
