"""Producer state when a log is loaded: the newest valid snapshot, and the batches after it.

Snapshots lie at the base offsets of segments and at the log end. A damaged one is dropped for the
one before it. After a clean stop without any snapshot nothing is replayed: a broker writes empty
snapshots and loses its producers rather than read the whole log. (docs/format.md, 10 and 14,
step 6; Kafka's `UnifiedLog.rebuildProducerState`, `ProducerStateManager.truncateAndReload`.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat.producers.producer_snapshot import decode_snapshot, encode_snapshot
from klog.logformat.segments.torn_tail import scan_to_damage
from tests.support.broker_loader.producer_state_manager import ProducerStateManager

SNAPSHOT_SEGMENTS = 2
"""Snapshots are written only at the base offsets of the last segments, and at the log end."""


@dataclass(frozen=True, slots=True)
class ReloadedProducers:
    """The producers at an offset, and the snapshots that there are now: offset to bytes."""

    producers: ProducerStateManager
    snapshots: dict[int, bytes]


def stray_snapshots(offsets: Iterable[int], base_offsets: Collection[int]) -> set[int]:
    """Return the snapshots to remove: those at no segment's base offset, except for one.

    The largest of them stays if it lies above all base offsets: a clean stop left it at the log
    end.
    """
    strays = set(offsets) - set(base_offsets)
    largest = max(strays, default=-1)
    return strays - {largest} if largest > max(base_offsets, default=-1) else strays


def usable_snapshots(offsets: Iterable[int], log_start: int, log_end: int) -> list[int]:
    """Return the snapshots above the log start and up to the log end, newest first."""
    return sorted((offset for offset in offsets if log_start < offset <= log_end), reverse=True)


def reload_producers(
    logs: Mapping[int, bytes],
    snapshots: Mapping[int, bytes],
    log_start: int,
    log_end: int,
    *,
    was_clean: bool = False,
    now_ms: int | None = None,
) -> ReloadedProducers:
    """Return the producers at `log_end` of a partition whose segments' logs are `logs`.

    `now_ms` is when producers in the snapshot expire, None to keep all. Raises `CorruptRecordError`
    if the replayed batches contradict each other.
    """
    if was_clean and not snapshots:
        return _without_producers(logs, log_end)
    usable = {
        offset: snapshots[offset] for offset in usable_snapshots(snapshots, log_start, log_end)
    }
    state = ProducerStateManager(log_start)
    for offset in list(usable):
        try:
            entries = decode_snapshot(usable[offset])
        except CorruptRecordError:
            del usable[offset]
            continue
        state = ProducerStateManager.from_snapshot(entries, offset, now_ms)
        break
    base_offsets = sorted(logs)
    first = max(bisect_right(base_offsets, state.end_offset) - 1, 0)
    last_snapshot = state.end_offset
    for base_offset in base_offsets[first:]:
        if base_offset >= log_end:
            break
        state.end_offset = max(base_offset, state.end_offset)
        if base_offset in base_offsets[-SNAPSHOT_SEGMENTS:] and state.end_offset > last_snapshot:
            last_snapshot = state.end_offset
            usable[last_snapshot] = encode_snapshot(state.snapshot())
        _replay(state, logs[base_offset], log_end)
    state.end_offset = log_end
    if log_end > last_snapshot:
        usable[log_end] = encode_snapshot(state.snapshot())
    return ReloadedProducers(state, usable)


def _replay(state: ProducerStateManager, log: bytes, log_end: int) -> None:
    """Replay the batches of one segment from the state's end to `log_end`."""
    batches, _ = scan_to_damage(log)
    is_new = (batches.next_offsets > state.end_offset) & (batches.base_offsets < log_end)
    state.replay(log, batches.where(is_new))


def _without_producers(logs: Mapping[int, bytes], log_end: int) -> ReloadedProducers:
    """Start with empty snapshots; offset 0 needs none."""
    offsets = {*sorted(logs)[-SNAPSHOT_SEGMENTS:], log_end} - {0}
    empty = encode_snapshot(())
    return ReloadedProducers(ProducerStateManager(log_end), dict.fromkeys(sorted(offsets), empty))
