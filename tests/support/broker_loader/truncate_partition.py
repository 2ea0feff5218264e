"""Truncate a partition to an offset, as a follower does before it fetches from a leader.

What lies at or after the offset goes: segments, the batches that reach it, entries of the indexes
and leader epochs. Producers are reloaded from the newest snapshot before it. (docs/format.md, 12
and 14; Kafka's `UnifiedLog.truncateTo` and `truncateFullyAndStartAt`.)
"""

from __future__ import annotations

from dataclasses import replace

from klog.logformat.broker_files.leader_epochs import NO_EPOCHS
from klog.logformat.broker_files.partition_listing import LOG
from klog.logformat.indexes import offset_index, time_index, transaction_index
from klog.logformat.segments.torn_tail import scan_to_damage
from tests.support.broker_loader.index_updates import entries_below
from tests.support.broker_loader.leader_epoch_cache import truncate_from_end
from tests.support.broker_loader.load_partition import (
    INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Partition,
)
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.broker_loader.reload_producers import reload_producers
from tests.support.broker_loader.split_segment import position_before

_ENTRY_BYTES = {
    INDEX: offset_index.ENTRY.itemsize,
    TIME_INDEX: time_index.ENTRY.itemsize,
    TRANSACTION_INDEX: transaction_index.ENTRY.itemsize,
}


def truncate(partition: Partition, offset: int, now_ms: int | None = None) -> Partition:
    """Return the partition with its log end at `offset`, or before; `now_ms` expires producers.

    An offset below the first segment empties the partition, and becomes its log start. Raises
    `ValueError` for a negative offset.
    """
    if offset < 0:
        raise ValueError(f"a log cannot be truncated to offset {offset}")
    if offset >= partition.log_end:
        return replace(partition, epochs=truncate_from_end(partition.epochs, partition.log_end))
    if offset < min(partition.segments):
        return empty_partition(offset)
    segments = {base: files for base, files in partition.segments.items() if base <= offset}
    last = max(segments)
    segments[last] = _truncated(segments[last], last, offset)
    log_start = min(partition.log_start, offset)
    logs = {base: files[LOG] for base, files in segments.items()}
    reloaded = reload_producers(logs, partition.snapshots, log_start, offset, now_ms=now_ms)
    return Partition(
        segments,
        reloaded.snapshots,
        truncate_from_end(partition.epochs, offset),
        reloaded.producers,
        log_start,
        offset,
    )


def empty_partition(offset: int) -> Partition:
    """Return a partition without records that starts, and ends, at `offset`."""
    files = {LOG: b"", INDEX: b"", TIME_INDEX: b""}
    state = ProducerStateManager(offset)
    return Partition({offset: files}, {}, NO_EPOCHS, state, offset, offset)


def _truncated(files: dict[str, bytes], base_offset: int, offset: int) -> dict[str, bytes]:
    log = files[LOG]
    batches, _ = scan_to_damage(log)
    truncated = {LOG: log[: position_before(batches, offset)]}
    # Index files are cut, not rewritten: a broker trusts them, so they may hold anything.
    for suffix, entry_bytes in _ENTRY_BYTES.items():
        if suffix in files:
            count = _entries_below(suffix, files[suffix], base_offset, offset)
            truncated[suffix] = files[suffix][: count * entry_bytes]
    return truncated


def _entries_below(suffix: str, data: bytes, base_offset: int, offset: int) -> int:
    if suffix == INDEX:
        offsets = offset_index.decode_offset_index(data, base_offset).offsets
    elif suffix == TIME_INDEX:
        offsets = time_index.decode_time_index(data, base_offset).offsets
    else:
        offsets = transaction_index.decode_aborted(data).last_offsets
    return entries_below(offsets, offset)
