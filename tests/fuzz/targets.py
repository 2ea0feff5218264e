"""What is fuzzed: a table of names and functions over bytes.

The rule: any bytes decode, or are refused by one of the errors that the target names; every other
exception is a defect. A target is a function that raises nothing else. Where a checksum would stop
an input, the function puts the right one in, as else nothing behind it would be reached; and where
two independent readers exist, what both accept must say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat import checkpoint, codecs, columnar, metadata, names, recovery, snapshot
from klog.logformat import offset_index as offsets
from klog.logformat import time_index as times
from klog.logformat import transaction_index as aborted
from klog.logformat import transactions as txn
from klog.logformat.control import ABORT
from tests import encode
from tests.fuzz.seal import sealed_log, sealed_snapshot
from tests.logformat.decoding import ALL, by_hand, records

_WRAP = 1 << 64
_LOG_BYTES = 1 << 20
_BASE, _END = 100, 1 << 40
_CODEC_LIMIT = 8 << 20
"""Far above what a small input needs, far below `MAX_BATCH_BYTES`, which costs time."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz: `share` is its part of the time, `refuses` what it may raise."""

    run: Callable[[bytes], object]
    max_bytes: int
    share: int = 1
    refuses: tuple[type[Exception], ...] = (CorruptRecordError,)


def segment(data: bytes) -> None:
    """Take the bytes of a segment as they are, and with right checksums."""
    with suppress(CorruptRecordError, UnsupportedFormatError):
        _decode(data)
    _decode(sealed_log(data))


def _decode(data: bytes) -> None:
    batches = v2.scan(data, 0, len(data))
    _check_tiles(batches, len(data))
    rows, last = 0, -1
    with _named(batches):
        v2.check_crcs(data, batches)
        for part in columnar.decode_parts(data, batches, ALL):
            assert len(records(part)) == len(part.offset)
            rows += len(part.offset)
            assert (np.diff(part.offset, prepend=last) > 0).all(), "offsets do not rise"
            last = int(part.offset[-1]) if len(part.offset) else last
    counts = batches.headers["count"].astype(np.int64)
    wrappers = counts == v2.WRAPPER_COUNT  # Only opening them tells how many they hold.
    least = int(np.where(wrappers, 1, counts).sum())
    assert rows >= least if wrappers.any() else rows == least


@contextmanager
def _named(batches: v2.Batches) -> Iterator[None]:
    """What is refused is named by the position of its batch."""
    try:
        yield
    except CorruptRecordError as exc:
        if exc.position not in batches.starts.tolist():
            raise AssertionError(f"no batch begins where {exc} says") from exc
        raise


def _check_tiles(batches: v2.Batches, size_bytes: int) -> None:
    """Batches lie one behind the other, inside the data."""
    behind = 0
    for start, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True):
        assert start == behind
        assert start < end <= size_bytes
        behind = end


def payload(data: bytes) -> None:
    """Take bytes as the records of a batch.

    Byte 0 is the last offset delta, byte 1 the count, byte 2 the codec and the timestamp type.
    """
    if len(data) >= 3:
        _check_records(data[3:], count=data[1], last_offset_delta=data[0], flags=data[2])


def record(data: bytes) -> None:
    """Take bytes as one record behind its length, which is right whatever was put in or out."""
    if data:
        whole = encode.varint(len(data) - 1) + data[1:]
        _check_records(whole, count=1, last_offset_delta=9, flags=data[0])


def _check_records(plain: bytes, count: int, last_offset_delta: int, flags: int) -> None:
    """Decode records bare, in a codec and by a plain reader: all that accept them must agree."""
    codec, kind = flags % len(encode.CODECS), flags & encode.LOG_APPEND_TIME
    bare, packed = (
        encode.batch(
            payload=encode.compress(each, plain),
            attributes=each | kind,
            count=count,
            base_offset=1000,
            base_timestamp=1000,
            max_timestamp=5000,
            last_offset_delta=last_offset_delta,
        )
        for each in (encode.NONE, codec)
    )
    found = _decoded(bare)
    if found is not None:
        _check_same(found, by_hand(bare))
        offsets = [one.offset for one in found]
        assert offsets == sorted(set(offsets))
        assert all(1000 <= offset <= 1000 + last_offset_delta for offset in offsets)
    assert _decoded(packed) == found, codecs.NAMES[codec]


def _decoded(one: bytes) -> list[encode.Record] | None:
    try:
        batches = v2.scan(one, 0, len(one))
        v2.check_crcs(one, batches)
        return records(columnar.decode(one, batches, ALL))
    except CorruptRecordError:
        return None


def _check_same(found: list[encode.Record], by_hand: list[encode.Record]) -> None:
    """Compare, but for times past 64 bits, which wrap as a broker's do."""
    assert [_wrapped(one) for one in found] == [_wrapped(one) for one in by_hand]


def _wrapped(one: encode.Record) -> tuple[object, ...]:
    return one.offset, one.timestamp % _WRAP, one.key, one.value, one.headers


def codec(data: bytes) -> None:
    """Decompress the bytes behind byte 0, which names the codec."""
    if data:
        out = codecs.decompress(data[0] & v2.CODEC_MASK, data[1:], _CODEC_LIMIT)
        assert len(out) <= max(_CODEC_LIMIT, len(data))


def control(data: bytes) -> None:
    """Look for transactions and their fates in a log of control batches and data."""
    data = sealed_log(data)
    batches = v2.scan(data, 0, len(data))
    with _named(batches):
        decided = txn.markers(data, batches)
        txn.follow({}, data, batches)
    later = dict.fromkeys(txn.undecided(batches, decided), ABORT)
    by_markers = txn.aborted(batches, decided, later)
    assert not (by_markers & txn.is_control(batches)).any()


def tail(data: bytes) -> None:
    """Look for batches in junk: each start found must hold a whole header."""
    for start in recovery.plausible_starts(data, 0, len(data)).tolist():
        assert 0 <= start <= len(data) - v2.HEADER_BYTES
        with suppress(CorruptRecordError):
            assert len(v2.scan(data, start, len(data))) >= 1
    assert recovery.is_padding(data) == (not any(data))


def offset_index(data: bytes) -> None:
    """Look up in an offset index."""
    found = offsets.read_offset_index(data, _BASE, _LOG_BYTES)
    if found is not None:
        assert 0 <= found.position_before(_BASE + 5) < _LOG_BYTES


def time_index(data: bytes) -> None:
    """Look up in a time index."""
    found = times.read_time_index(data, _BASE)
    if found is not None:
        assert -1 <= found.entry_before(1000) < len(found.timestamps)


def transaction_index(data: bytes) -> None:
    """Read a transaction index."""
    found = aborted.read_aborted(data, _BASE, _END)
    if found is not None:
        assert (found.first_offsets < found.last_offsets).all()


def producer_snapshot(data: bytes) -> None:
    """Read a snapshot as it is, and with a right checksum."""
    snapshot.read_open_transactions(data)
    open_transactions = snapshot.read_open_transactions(sealed_snapshot(data))
    if open_transactions is not None:
        assert all(first >= 0 for first in open_transactions.values())


def text(data: bytes) -> None:
    """Read checkpoint files, and names of files and directories."""
    checkpoint.read_offset_checkpoint(data)
    topic_id = metadata.read_topic_id(data)
    assert topic_id is None or len(topic_id) == 22
    name = data.decode("utf-8", "surrogateescape")
    names.partition_of_directory(name)
    names.segment_file(name)
    names.transitional_file(name)
    names.snapshot_file(name)
    names.is_topic(name)


_LOG = (CorruptRecordError, UnsupportedFormatError)

TARGETS = {
    "segment": Target(segment, 2048, 5, _LOG),
    "payload": Target(payload, 512, 3),
    "record": Target(record, 200, 3),
    "codec": Target(codec, 512, 3),
    "control": Target(control, 1024, 2, _LOG),
    "tail": Target(tail, 1024, 1, _LOG),
    "offset_index": Target(offset_index, 128),
    "time_index": Target(time_index, 192),
    "transaction_index": Target(transaction_index, 340),
    "producer_snapshot": Target(producer_snapshot, 240),
    "text": Target(text, 256),
}


def check(name: str, data: bytes) -> None:
    """Put one input to a target; what it may refuse is not an error."""
    target = TARGETS[name]
    with suppress(*target.refuses):
        target.run(data)
