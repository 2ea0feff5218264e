"""Targets that follow a log: transactions, producers, recovery of a segment, a whole partition.

The functions assert what must hold: a log read in chunks gives the same as the whole log, and a
second recovery changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

from klog.errors import (
    CorruptRecordError,
    KlogError,
    OutOfOrderSequenceError,
    ProducerFencedError,
)
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import encode_epoch_checkpoint
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.producers import transaction_outcomes as txn
from klog.logformat.producers.control_records import ABORT
from klog.logformat.producers.producer_batch import producer_batches
from klog.logformat.producers.producer_snapshot import decode_snapshot, encode_snapshot
from klog.logformat.segments import torn_tail as tails
from tests.fuzz.record_targets import named
from tests.fuzz.seal import sealed_log, sealed_snapshot
from tests.support.broker_loader.load_partition import EPOCH_CHECKPOINT, Partition, load
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.broker_loader.recover_segment import RecoveredSegment, SegmentRecovery, recover
from tests.support.broker_loader.truncate_partition import truncate

_BASES = (0, 2, 5, 7)
_KINDS = ("log", "index", "timeindex", "txnindex", "snapshot")
_ENDINGS = ("", ".swap", ".cleaned", ".deleted")
_FILE = struct.Struct(">BH")


def control(data: bytes) -> None:
    """Look for transactions and their outcomes in a log of control batches and data."""
    data = sealed_log(data)
    batches = scan_batches(data, 0, len(data))
    with named(batches):
        decided = txn.transaction_markers(data, batches)
        txn.replay_transactions({}, data, batches)
    later = dict.fromkeys(txn.undecided_producers(batches, decided), ABORT)
    by_markers = txn.is_aborted(batches, decided, later)
    assert not (by_markers & batches.is_control).any()


def tail(data: bytes) -> None:
    """Look for batches in junk: each start found must hold a header of the shortest format."""
    for start in tails.plausible_starts(data, 0, len(data)).tolist():
        assert 0 <= start <= len(data) - v2.MIN_BATCH_BYTES
        with suppress(CorruptRecordError):
            assert len(scan_batches(data, start, len(data))) >= 1
    assert tails.is_padding(data) == (not any(data))


def producers(data: bytes) -> None:
    """Follow the producers of a log, whole and in two parts; append its batches as a client's."""
    data = sealed_log(data)
    batches = scan_batches(data, 0, len(data))
    _append(data, batches)
    whole, parted = ProducerStateManager(), ProducerStateManager()
    with named(batches):
        completed = whole.replay(data, batches)
    half = len(batches) // 2
    first, rest = batches.slice(0, half), batches.slice(half, len(batches))
    assert parted.replay(data, first) + parted.replay(data, rest) == completed
    assert parted == whole
    entries = whole.snapshot()
    assert decode_snapshot(encode_snapshot(entries)) == entries
    loaded = ProducerStateManager.from_snapshot(entries, whole.end_offset)
    assert loaded.snapshot() == entries
    assert loaded.open_transactions == whole.open_transactions
    assert whole.last_stable_offset(whole.end_offset) <= whole.end_offset


def _append(data: bytes, batches: v2.Batches) -> None:
    """Take what comes in turn; what does not must change nothing."""
    state = ProducerStateManager()
    for batch in producer_batches(data, batches):
        before = state.copy()
        if state.duplicate_of(batch) is not None:
            continue
        try:
            state.append(batch)
        except (OutOfOrderSequenceError, ProducerFencedError, CorruptRecordError):
            assert state == before
        else:
            assert (
                batch.is_control or state.duplicate_of(batch) is not None or batch.base_sequence < 0
            )


def recovered(data: bytes) -> None:
    """Recover a segment whole and in chunks, and then recover the result.

    Byte 0 is the size of a chunk, byte 1 the base offset.
    """
    if len(data) < 2:
        return
    piece_bytes, base, log = data[0] + 1, data[1], sealed_log(data[2:])
    whole = _outcome(lambda: recover(log, base, interval_bytes=64))
    assert _outcome(lambda: _in_pieces(log, base, piece_bytes)) == whole
    if isinstance(whole, RecoveredSegment):
        assert bool(whole.reason) == (whole.position < len(log))
        again = recover(log[: whole.position], base, interval_bytes=64)
        assert again == whole or whole.overflows
        assert not again.reason


def _in_pieces(log: bytes, base: int, piece_bytes: int) -> RecoveredSegment:
    recovery = SegmentRecovery(base, interval_bytes=64)
    for begin in range(0, len(log), piece_bytes):
        recovery.feed(log[begin : begin + piece_bytes])
    return recovery.finish()


def _outcome(run: Callable[[], RecoveredSegment]) -> RecoveredSegment | tuple[type[KlogError], str]:
    """Return the result, or the error and its position."""
    try:
        return run()
    except KlogError as exc:
        return type(exc), str(exc)


def partition(data: bytes) -> None:
    """Load a partition from files made of the input, then again what came out, and truncate it.

    Byte 0 says how it was closed, byte 1 the recovery point, byte 2 the log's start, byte 3 where
    to truncate; then for each file a byte of its name, two of its size, and its bytes.
    """
    if len(data) < 4:
        return
    files = dict(_files(data[4:]))
    was_clean, start = bool(data[0] & 1), data[2] & 15
    loaded = load(
        files,
        log_start=start,
        recovery_point=data[1],
        was_clean=was_clean,
        now_ms=2000 if data[0] & 2 else None,
        interval_bytes=64,
    )
    _check_bounds(loaded)
    if not was_clean and data[1] == 0:
        _check_settled(loaded, start)
    _check_bounds(truncate(loaded, data[3]))


def _check_bounds(partition: Partition) -> None:
    """Compare what a partition says of itself."""
    assert partition.log_start <= partition.log_end
    assert partition.producers.end_offset == partition.log_end
    assert min(partition.segments) <= partition.log_start
    begins = [entry.start_offset for entry in partition.epochs.entries]
    assert all(begin < partition.log_end or begin == partition.log_start for begin in begins)
    for taken in partition.snapshots.values():
        with suppress(CorruptRecordError):
            decode_snapshot(taken)


def _check_settled(partition: Partition, start: int) -> None:
    """Recover what was recovered: its logs and its end stay."""
    files = {
        segment_file_name(base, suffix): data
        for base, segment in partition.segments.items()
        for suffix, data in segment.items()
    }
    files |= {
        segment_file_name(offset, "snapshot"): data for offset, data in partition.snapshots.items()
    }
    files[EPOCH_CHECKPOINT] = encode_epoch_checkpoint(partition.epochs.entries)
    again = load(files, log_start=start, interval_bytes=64)
    assert (again.logs, again.log_start, again.log_end) == (
        partition.logs,
        partition.log_start,
        partition.log_end,
    )


def _files(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at + _FILE.size <= len(data):
        which, size = _FILE.unpack_from(data, at)
        at += _FILE.size
        yield _file(which, data[at : at + size])
        at += size


def named_file(base_offset: int, kind: str, ending: str, content: bytes) -> bytes:
    """Write one file as `partition` reads it; a kind that is none stands for the checkpoint."""
    number = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    which = _BASES.index(base_offset) | number << 2 | _ENDINGS.index(ending) << 5
    return _FILE.pack(which, len(content)) + content


def _file(which: int, content: bytes) -> tuple[str, bytes]:
    """Name a file: bits 0 to 1 its base, 2 to 4 its kind, 5 to 6 its ending; bit 7 unchanged."""
    number = which >> 2 & 7
    if number >= len(_KINDS):
        return EPOCH_CHECKPOINT, content
    kind = _KINDS[number]
    if which < 128:
        content = {"log": sealed_log, "snapshot": sealed_snapshot}.get(kind, bytes)(content)
    return segment_file_name(_BASES[which & 3], kind) + _ENDINGS[which >> 5 & 3], content
