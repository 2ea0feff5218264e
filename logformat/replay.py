"""Producer state when a log is loaded: the newest whole snapshot, and the batches behind it.

Snapshots lie at the bases of segments and at the end of the log. One that is damaged is dropped for
the one before it. After a clean stop that left no snapshot at all nothing is replayed: a broker
writes empty ones and forgets its producers rather than read the whole log. (docs/format.md, 10 and
14, step 6; Kafka's `UnifiedLog.rebuildProducerState`, `ProducerStateManager.truncateAndReload`.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat.producers import ProducerState
from klog.logformat.segment_recovery import scan_to_fault
from klog.logformat.snapshot import decode_snapshot, encode_snapshot

SNAPSHOT_SEGMENTS = 2
"""Only at the bases of the last segments, and at the end, are snapshots worth writing."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The producers at an offset, and the snapshots that there are now: offset to bytes."""

    producers: ProducerState
    snapshots: dict[int, bytes]


def stray_snapshots(offsets: Iterable[int], base_offsets: Collection[int]) -> set[int]:
    """List the snapshots that clean-up removes: those at no segment's base, but for one.

    The largest of them stays if it lies above all bases: a clean stop left it at the log's end.
    """
    strays = set(offsets) - set(base_offsets)
    largest = max(strays, default=-1)
    return strays - {largest} if largest > max(base_offsets, default=-1) else strays


def usable_snapshots(offsets: Iterable[int], log_start: int, log_end: int) -> list[int]:
    """Give the snapshots above the log's start and up to its end, newest first."""
    return sorted((offset for offset in offsets if log_start < offset <= log_end), reverse=True)


def reload_producers(
    logs: Mapping[int, bytes],
    snapshots: Mapping[int, bytes],
    log_start: int,
    log_end: int,
    *,
    was_clean: bool = False,
    now_ms: int | None = None,
) -> Reloaded:
    """Give the producers at `log_end` of a partition whose segments' logs are `logs`.

    `now_ms` is when producers in the snapshot expire; None lets none expire. Raises
    `CorruptRecordError` where the batches replayed contradict each other.
    """
    if was_clean and not snapshots:
        return _forgotten(logs, log_end)
    kept = {one: snapshots[one] for one in usable_snapshots(snapshots, log_start, log_end)}
    state = ProducerState(log_start)
    for offset in list(kept):
        try:
            entries = decode_snapshot(kept[offset])
        except CorruptRecordError:
            del kept[offset]
            continue
        state = ProducerState.from_snapshot(entries, offset, now_ms)
        break
    bases = sorted(logs)
    first = max(bisect_right(bases, state.end_offset) - 1, 0)
    last_snapshot = state.end_offset
    for base in bases[first:]:
        if base >= log_end:
            break
        state.end_offset = max(base, state.end_offset)
        if base in bases[-SNAPSHOT_SEGMENTS:] and state.end_offset > last_snapshot:
            last_snapshot = state.end_offset
            kept[last_snapshot] = encode_snapshot(state.snapshot())
        _replay(state, logs[base], log_end)
    state.end_offset = log_end
    if log_end > last_snapshot:
        kept[log_end] = encode_snapshot(state.snapshot())
    return Reloaded(state, kept)


def _replay(state: ProducerState, log: bytes, log_end: int) -> None:
    """Carry the state over the batches of one segment that reach from its end to `log_end`."""
    batches, _ = scan_to_fault(log)
    wanted = (batches.next_offsets > state.end_offset) & (batches.base_offsets < log_end)
    state.replay(log, batches.where(wanted))


def _forgotten(logs: Mapping[int, bytes], log_end: int) -> Reloaded:
    """Begin anew with empty snapshots; offset 0 needs none."""
    offsets = {*sorted(logs)[-SNAPSHOT_SEGMENTS:], log_end} - {0}
    empty = encode_snapshot(())
    return Reloaded(ProducerState(log_end), dict.fromkeys(sorted(offsets), empty))
