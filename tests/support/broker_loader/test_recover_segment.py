"""Recovery of a segment keeps the intact batches before the first damage, whatever follows."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.broker_files.leader_epochs import EpochEntry, LeaderEpochs
from klog.logformat.producers.producer_snapshot import encode_snapshot
from tests.conformance.log_files import Writer
from tests.logformat.golden_vectors import DIRECTORY
from tests.logformat.random_batches import logs
from tests.support.batch_bytes import (
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    plain,
    sealed,
    transactional,
)
from tests.support.broker_loader import recover_segment
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.broker_loader.recover_segment import RecoveredSegment, SegmentRecovery, recover
from tests.support.legacy_bytes import message

GOLDEN = b"".join(DIRECTORY)
MAX = (1 << 31) - 1


def test_recovery_of_the_golden_directory() -> None:
    recovered = recover(GOLDEN, 0)
    assert (recovered.position, recovered.next_offset, recovered.largest_timestamp_ms) == (
        671,
        11,
        1010,
    )
    assert (recovered.index, recovered.time_index.hex()) == (b"", "00000000000003f20000000a")
    assert recovered.transaction_index.hex() == (
        "0000000000000000000a000000000000000200000000000000050000000000000003"
        "0000000000000000000a00000000000000060000000000000009000000000000000a"
    )
    assert recovered.epochs == LeaderEpochs((EpochEntry(0, 0), EpochEntry(1, 5)))
    assert encode_snapshot(recovered.producers.snapshot()).hex()[4:12] == "1df3cf6f"
    assert (recovered.reason, recovered.overflows) == ("", False)


def in_chunks(data: bytes, size: int) -> RecoveredSegment:
    recovery = SegmentRecovery(0)
    for start in range(0, len(data), size):
        recovery.feed(data[start : start + size])
    return recovery.finish()


@given(logs(), st.data())
def test_log_cut_at_any_byte_keeps_the_batches_before(
    batches: list[bytes], data: st.DataObject
) -> None:
    log = b"".join(batches)
    cut = data.draw(st.integers(0, len(log)))
    ends = [0, *accumulate(map(len, batches))]
    position = max(end for end in ends if end <= cut)
    recovered = recover(log[:cut], 0)
    assert recovered.position == position
    assert recovered == recover(log[:position], 0)
    assert bool(recovered.reason) == (position < cut)


@given(logs(6), st.binary(max_size=200))
def test_junk_after_a_log_is_cut(batches: list[bytes], junk: bytes) -> None:
    log = b"".join(batches)
    assert recover(log + junk, 0) == recover(log, 0)


@given(logs(6), st.data())
def test_flipped_bit_under_the_crc_cuts_the_log(batches: list[bytes], data: st.DataObject) -> None:
    if not batches:
        return
    number = data.draw(st.integers(0, len(batches) - 1))
    damaged = bytearray(batches[number])
    bit = data.draw(st.integers(21 * 8, len(damaged) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    before = b"".join(batches[:number])
    recovered = recover(before + bytes(damaged) + b"".join(batches[number + 1 :]), 0)
    assert recovered == recover(before, 0)


@given(logs(), st.integers(1, 400), st.binary(max_size=150))
def test_recovery_is_independent_of_chunks(batches: list[bytes], size: int, junk: bytes) -> None:
    log = b"".join(batches) + junk
    assert in_chunks(log, size) == recover(log, 0)


@given(logs(), st.data())
def test_replay_after_a_snapshot_equals_full_replay(
    batches: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    complete = recover(b"".join(batches), 0).producers
    half = recover(b"".join(batches[:cut]), 0)
    loaded = ProducerStateManager.from_snapshot(half.producers.snapshot(), half.next_offset)
    after = recover(b"".join(batches[cut:]), half.next_offset, producers=loaded).producers
    assert after.snapshot() == complete.snapshot()
    assert after.open_transactions == complete.open_transactions
    assert after.end_offset == complete.end_offset


@given(logs(), st.data())
def test_next_segment_continues_the_state(batches: list[bytes], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    complete = recover(b"".join(batches), 0)
    first = recover(b"".join(batches[:cut]), 0)
    second = recover(
        b"".join(batches[cut:]),
        first.next_offset,
        producers=first.producers,
        epochs=first.epochs,
    )
    assert (second.next_offset, second.epochs) == (complete.next_offset, complete.epochs)
    assert second.producers == complete.producers
    assert first.transaction_index + second.transaction_index == complete.transaction_index


@given(st.binary(max_size=300))
def test_any_bytes_without_a_batch_are_cut(data: bytes) -> None:
    assert recover(data, 0).position == 0


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        pytest.param(plain(0), "offset 1", id="an offset again"),
        pytest.param(plain(5, timestamp=1)[:40], "cut short", id="a torn header"),
        pytest.param(plain(5)[:-1], "cut short", id="a torn batch"),
        pytest.param(bytes(4096), "", id="padding"),
        pytest.param(batch([Record(5, 0)], crc=1), "CRC-32C", id="a wrong CRC"),
        pytest.param(batch([Record(5, 0)], magic=3), "magic 3", id="magic 3"),
        pytest.param(batch([Record(5, 0)], length=48), "length 48", id="too short"),
        pytest.param(
            control(5, 0, producer_id=1, producer_epoch=0, value=b"\0"),
            "with a value of 1 bytes",
            id="a marker without a value",
        ),
        pytest.param(
            control(5, 1, producer_id=1, producer_epoch=0, value=b"\xff\xff\0\0\0\0"),
            "version -1",
            id="a marker of a negative version",
        ),
        pytest.param(
            control(5, 1, producer_id=1, producer_epoch=0, key=b"\0"), "without a key", id="no key"
        ),
        pytest.param(
            batch(
                payload=b"\x22\0\0\0\x08\0\0\0\1" + b"\xff" * 9,
                base_offset=5,
                count=1,
                attributes=CONTROL | TRANSACTIONAL,
                producer_id=1,
                producer_epoch=0,
            ),
            "varint of more than 5 bytes",
            id="a marker whose value has no length",
        ),
    ],
)
def test_tail_that_cuts_a_log(tail: bytes, reason: str) -> None:
    log = plain(0) + plain(1)
    recovered = (
        recover(log + tail + plain(9), 0) if reason != "cut short" else recover(log + tail, 0)
    )
    assert (recovered.position, recovered.next_offset) == (len(log), 2)
    assert recovered.reason
    assert reason in recovered.reason
    assert not recovered.overflows
    for size in (1, 50, 61, 100):
        assert in_chunks(log + tail, size) == recover(log + tail, 0)


LONG = {
    "v2": plain(1, [b"longer than the limit"]),
    "v1": message(Record(1, 5, b"k", b"longer than the limit by more than v2 needs"), 1),
}


@pytest.mark.parametrize("size", [20, 61, 90, 1 << 20])
@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
def test_an_intact_batch_above_the_limit_is_not_cut(
    monkeypatch: pytest.MonkeyPatch, long: bytes, size: int
) -> None:
    """A broker accepts it; klog does not, but a recovery that cuts it would lose data."""
    log = plain(0)
    monkeypatch.setattr(recover_segment, "MAX_BATCH_BYTES", len(log))
    with pytest.raises(UnsupportedFormatError, match=f"of {len(long)} bytes is intact") as caught:
        in_chunks(log + long + plain(2), size)
    assert caught.value.position == len(log)
    damaged = in_chunks(log + long[:-1] + b"?" + plain(2), size)
    assert (damaged.position, damaged.next_offset) == (len(log), 1)
    torn = in_chunks(log + long[:-1], size)
    assert (torn.position, torn.reason) == (len(log), "a batch is cut short")


def test_log_above_the_largest_position(monkeypatch: pytest.MonkeyPatch) -> None:
    log = plain(0) + plain(1)
    monkeypatch.setattr(recover_segment, "MAX_POSITION", len(log))
    for size in (50, len(log)):
        assert in_chunks(log, size).position == len(log)
        with pytest.raises(CorruptRecordError, match="a log of more than"):
            in_chunks(log + plain(2), size)


def test_offsets_out_of_the_segment() -> None:
    inside = plain(10)
    above = recover(inside + plain(11 + MAX), 10)
    assert (above.position, above.overflows) == (len(inside), True)
    assert recover(inside + plain(10 + MAX), 10).overflows is False
    markerless = control(11, 1, producer_id=1, producer_epoch=0, value=b"")
    cut_before = recover(inside + markerless + plain(11 + MAX), 10)
    assert (cut_before.position, cut_before.overflows) == (len(inside), False)
    below = recover(plain(9), 10)
    assert (below.position, below.overflows, below.next_offset) == (0, False, 10)
    assert "in the segment of offset 10" in below.reason


def test_data_outside_an_open_transaction_is_an_error() -> None:
    first, second = transactional(0, 7), transactional(1, 7)
    outside = sealed(second[:21] + b"\0\0" + second[23:])
    for size in (1, 10, 1000):
        with pytest.raises(CorruptRecordError, match="outside its transaction") as caught:
            in_chunks(first + outside, size)
        assert caught.value.position == len(first)


def test_control_batch_without_an_outcome() -> None:
    emptied = batch(
        [],
        base_offset=1,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=3,
    )
    unknown = control(2, 9, producer_id=7, producer_epoch=3, attributes=TRANSACTIONAL | CONTROL)
    recovered = recover(transactional(0, 7) + emptied + unknown, 0)
    assert (recovered.next_offset, recovered.transaction_index) == (3, b"")
    assert recovered.producers.open_transactions == {7: 0}
    assert recovered.producers.producers[7].epoch == 0


def test_only_rising_epochs_count() -> None:
    log = Writer().write(
        ("epoch", 3), ("plain", 1), ("epoch", 2), ("plain", 1), ("epoch", 5), ("plain", 1)
    )
    known = LeaderEpochs((EpochEntry(1, 0),))
    assert recover(b"".join(log), 0).epochs.entries == (EpochEntry(3, 0), EpochEntry(5, 2))
    # An entry at an offset of the log contradicts it.
    assert recover(b"".join(log), 0, epochs=known).epochs.entries == (
        EpochEntry(3, 0),
        EpochEntry(5, 2),
    )
    none = b"".join(Writer().write(("epoch", -1), ("plain", 1)))
    assert recover(none, 0).epochs.entries == ()


def test_argument_is_not_changed() -> None:
    state = ProducerStateManager(0)
    recover(transactional(0, 7), 0, producers=state)
    assert state == ProducerStateManager(0)
