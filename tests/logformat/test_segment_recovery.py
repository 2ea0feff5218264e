"""Recovery of a segment: it keeps the intact batches before the first fault, whatever follows."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import segment_recovery
from klog.logformat.epochs import EpochEntry, LeaderEpochs
from klog.logformat.producers import ProducerState
from klog.logformat.segment_recovery import Recovered, Recovery, recover
from klog.logformat.snapshot import encode_snapshot
from tests.conformance.log_files import Writer
from tests.encode import (
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    plain,
    sealed,
    transactional,
)
from tests.encode_legacy import message
from tests.logformat.golden import DIRECTORY
from tests.logformat.logs import logs

GOLDEN = b"".join(DIRECTORY)
MAX = (1 << 31) - 1


def test_the_golden_directory() -> None:
    found = recover(GOLDEN, 0)
    assert (found.position, found.next_offset, found.largest_timestamp_ms) == (671, 11, 1010)
    assert (found.index, found.time_index.hex()) == (b"", "00000000000003f20000000a")
    assert found.transaction_index.hex() == (
        "0000000000000000000a000000000000000200000000000000050000000000000003"
        "0000000000000000000a00000000000000060000000000000009000000000000000a"
    )
    assert found.epochs == LeaderEpochs((EpochEntry(0, 0), EpochEntry(1, 5)))
    assert encode_snapshot(found.producers.snapshot()).hex()[4:12] == "1df3cf6f"
    assert (found.reason, found.leaves_segment) == ("", False)


def in_pieces(data: bytes, size: int) -> Recovered:
    recovery = Recovery(0)
    for begin in range(0, len(data), size):
        recovery.feed(data[begin : begin + size])
    return recovery.finish()


@given(logs(), st.data())
def test_a_cut_at_any_byte_recovers_the_batches_before_it(
    batches: list[bytes], data: st.DataObject
) -> None:
    log = b"".join(batches)
    cut = data.draw(st.integers(0, len(log)))
    ends = [0, *accumulate(map(len, batches))]
    kept = max(end for end in ends if end <= cut)
    found = recover(log[:cut], 0)
    assert found.position == kept
    assert found == recover(log[:kept], 0)
    assert bool(found.reason) == (kept < cut)


@given(logs(6), st.binary(max_size=200))
def test_garbage_behind_a_log_adds_nothing(batches: list[bytes], garbage: bytes) -> None:
    log = b"".join(batches)
    assert recover(log + garbage, 0) == recover(log, 0)


@given(logs(6), st.data())
def test_a_flipped_bit_under_the_crc_cuts_there(batches: list[bytes], data: st.DataObject) -> None:
    if not batches:
        return
    number = data.draw(st.integers(0, len(batches) - 1))
    spoilt = bytearray(batches[number])
    bit = data.draw(st.integers(21 * 8, len(spoilt) * 8 - 1))
    spoilt[bit // 8] ^= 1 << bit % 8
    before = b"".join(batches[:number])
    found = recover(before + bytes(spoilt) + b"".join(batches[number + 1 :]), 0)
    assert found == recover(before, 0)


@given(logs(), st.integers(1, 400), st.binary(max_size=150))
def test_pieces_of_any_size_recover_the_same(
    batches: list[bytes], size: int, garbage: bytes
) -> None:
    log = b"".join(batches) + garbage
    assert in_pieces(log, size) == recover(log, 0)


@given(logs(), st.data())
def test_a_snapshot_and_the_rest_say_what_the_whole_log_says(
    batches: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    whole = recover(b"".join(batches), 0).producers
    half = recover(b"".join(batches[:cut]), 0)
    loaded = ProducerState.from_snapshot(half.producers.snapshot(), half.next_offset)
    rest = recover(b"".join(batches[cut:]), half.next_offset, producers=loaded).producers
    assert rest.snapshot() == whole.snapshot()
    assert rest.open_transactions == whole.open_transactions
    assert rest.end_offset == whole.end_offset


@given(logs(), st.data())
def test_the_next_segment_goes_on_where_one_ended(
    batches: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    whole = recover(b"".join(batches), 0)
    first = recover(b"".join(batches[:cut]), 0)
    behind = recover(
        b"".join(batches[cut:]),
        first.next_offset,
        producers=first.producers,
        epochs=first.epochs,
    )
    assert (behind.next_offset, behind.epochs) == (whole.next_offset, whole.epochs)
    assert behind.producers == whole.producers
    assert first.transaction_index + behind.transaction_index == whole.transaction_index


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    # Garbage of no batch is cut, whatever lies in front of it.
    assert recover(data, 0).position == 0


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        pytest.param(plain(0), "behind offset 1", id="an offset again"),
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
def test_what_cuts_a_log(behind: bytes, reason: str) -> None:
    log = plain(0) + plain(1)
    found = (
        recover(log + behind + plain(9), 0) if reason != "cut short" else recover(log + behind, 0)
    )
    assert (found.position, found.next_offset) == (len(log), 2)
    assert found.reason
    assert reason in found.reason
    assert not found.leaves_segment
    for size in (1, 50, 61, 100):
        assert in_pieces(log + behind, size) == recover(log + behind, 0)


LONG = {
    "v2": plain(1, [b"longer than the limit"]),
    "v1": message(Record(1, 5, b"k", b"longer than the limit by more than v2 needs"), 1),
}


@pytest.mark.parametrize("size", [20, 61, 90, 1 << 20])
@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
def test_an_intact_batch_above_the_limit_is_not_cut(
    monkeypatch: pytest.MonkeyPatch, long: bytes, size: int
) -> None:
    """A broker takes it; klog cannot, but a recovery that cuts it would lose what is there."""
    log = plain(0)
    monkeypatch.setattr(segment_recovery, "MAX_BATCH_BYTES", len(log))
    with pytest.raises(UnsupportedFormatError, match=f"of {len(long)} bytes is intact") as caught:
        in_pieces(log + long + plain(2), size)
    assert caught.value.position == len(log)
    damaged = in_pieces(log + long[:-1] + b"?" + plain(2), size)
    assert (damaged.position, damaged.next_offset) == (len(log), 1)
    torn = in_pieces(log + long[:-1], size)
    assert (torn.position, torn.reason) == (len(log), "a batch is cut short")


def test_a_log_longer_than_a_position_can_say(monkeypatch: pytest.MonkeyPatch) -> None:
    log = plain(0) + plain(1)
    monkeypatch.setattr(segment_recovery, "MAX_POSITION", len(log))
    for size in (50, len(log)):
        assert in_pieces(log, size).position == len(log)
        with pytest.raises(CorruptRecordError, match="a log of more than"):
            in_pieces(log + plain(2), size)


def test_offsets_that_leave_the_segment() -> None:
    inside = plain(10)
    beyond = recover(inside + plain(11 + MAX), 10)
    assert (beyond.position, beyond.leaves_segment) == (len(inside), True)
    assert recover(inside + plain(10 + MAX), 10).leaves_segment is False
    markerless = control(11, 1, producer_id=1, producer_epoch=0, value=b"")
    cut_before = recover(inside + markerless + plain(11 + MAX), 10)
    assert (cut_before.position, cut_before.leaves_segment) == (len(inside), False)
    below = recover(plain(9), 10)
    assert (below.position, below.leaves_segment, below.next_offset) == (0, False, 10)
    assert "in the segment of offset 10" in below.reason


def test_data_outside_an_open_transaction_is_an_error_with_its_position() -> None:
    first, second = transactional(0, 7), transactional(1, 7)
    outside = sealed(second[:21] + b"\0\0" + second[23:])
    for size in (1, 10, 1000):
        with pytest.raises(CorruptRecordError, match="outside its transaction") as caught:
            in_pieces(first + outside, size)
        assert caught.value.position == len(first)


def test_a_control_batch_that_decides_nothing() -> None:
    emptied = batch(
        [],
        base_offset=1,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=3,
    )
    unknown = control(2, 9, producer_id=7, producer_epoch=3, attributes=TRANSACTIONAL | CONTROL)
    found = recover(transactional(0, 7) + emptied + unknown, 0)
    assert (found.next_offset, found.transaction_index) == (3, b"")
    assert found.producers.open_transactions == {7: 0}
    assert found.producers.producers[7].epoch == 0


def test_only_rising_epochs_are_taken() -> None:
    log = Writer().write(
        ("epoch", 3), ("plain", 1), ("epoch", 2), ("plain", 1), ("epoch", 5), ("plain", 1)
    )
    known = LeaderEpochs((EpochEntry(1, 0),))
    assert recover(b"".join(log), 0).epochs.entries == (EpochEntry(3, 0), EpochEntry(5, 2))
    # An epoch that the cache has later than the log is contradicted by it.
    assert recover(b"".join(log), 0, epochs=known).epochs.entries == (
        EpochEntry(3, 0),
        EpochEntry(5, 2),
    )
    none = b"".join(Writer().write(("epoch", -1), ("plain", 1)))
    assert recover(none, 0).epochs.entries == ()


def test_the_state_given_is_not_changed() -> None:
    given_state = ProducerState(0)
    recover(transactional(0, 7), 0, producers=given_state)
    assert given_state == ProducerState(0)
