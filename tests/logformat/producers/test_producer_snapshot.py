"""Producer snapshots (docs/format.md, 10): golden files, round trips, damage."""

from __future__ import annotations

import struct

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.producers.producer_snapshot import (
    ProducerEntry,
    decode_snapshot,
    encode_snapshot,
    parse_open_transactions,
)

TWO = bytes.fromhex(
    "0001d9c5aebe000000020000000000000fa0000300000013000000000000006d0000000200000000000004d2"
    "0000000900000000000000690000000000000fa10007ffffffffffffffffffffffff0000000000000000000005dc"
    "00000005ffffffffffffffff"
)
EMPTY = bytes.fromhex("000148674bc700000000")
DIRECTORY = bytes.fromhex(  # docs/format.md, 7.1: four producers, one with an open transaction.
    "00011df3cf6f00000004000000000000000a0000000000010000000000000006000000000000000000000"
    "3f100000008ffffffffffffffff000000000000000b00000000000100000000000000040000000100000000"
    "000003ef00000007ffffffffffffffff000000000000000c0000000000000000000000000008000000000000"
    "0000000003f0ffffffffffffffffffffffff000000000000000d000200000000000000000000000a00000000"
    "00000000000003f2ffffffff000000000000000a"
)


def snapshot(*producers: tuple[int, int], version: int = 1, count: int | None = None) -> bytes:
    """Write a snapshot of (producer id, first offset of its open transaction or -1)."""
    body = struct.pack(">i", len(producers) if count is None else count)
    for producer_id, first_offset in producers:
        body += struct.pack(">qhiqiqiq", producer_id, 0, 5, 100, 1, 1000, 3, first_offset)
    return struct.pack(">hI", version, google_crc32c.value(body)) + body


@pytest.mark.parametrize(
    ("data", "open_transactions"),
    [
        pytest.param(TWO, {4000: 105}, id="golden"),
        pytest.param(EMPTY, {}, id="golden, empty"),
        pytest.param(DIRECTORY, {13: 10}, id="golden directory"),
        pytest.param(snapshot((7, 0), (8, -1), (9, 44)), {7: 0, 9: 44}, id="several"),
        pytest.param(snapshot((1 << 62, 1 << 61)), {1 << 62: 1 << 61}, id="large"),
    ],
)
def test_open_transactions(data: bytes, open_transactions: dict[int, int]) -> None:
    assert parse_open_transactions(data) == open_transactions


@pytest.mark.parametrize("data", [TWO, EMPTY, DIRECTORY])
def test_cut_or_extended_snapshot_is_none(data: bytes) -> None:
    for size in range(len(data)):
        assert parse_open_transactions(data[:size]) is None
    for junk in (b"\0", bytes(46), data):
        assert parse_open_transactions(data + junk) is None


@pytest.mark.parametrize("data", [TWO, EMPTY])
def test_flipped_bit_is_detected(data: bytes) -> None:
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert parse_open_transactions(bytes(flipped)) is None, bit


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(snapshot((7, 0), version=0), id="version 0"),
        pytest.param(snapshot((7, 0), version=2), id="version 2"),
        pytest.param(snapshot((7, 0), count=0), id="count too small"),
        pytest.param(snapshot((7, 0), count=2), id="count too large"),
        pytest.param(snapshot((7, 0), count=-1), id="negative count"),
        pytest.param(snapshot((7, 0), count=(1 << 31) - 1), id="huge count"),
    ],
)
def test_valid_crc_does_not_excuse_other_damage(data: bytes) -> None:
    assert parse_open_transactions(data) is None


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_none(data: bytes) -> None:
    assert parse_open_transactions(data) is None or len(data) >= 10
    sealed = struct.pack(">hI", 1, google_crc32c.value(data)) + data
    open_transactions = parse_open_transactions(sealed)
    assert open_transactions is None or all(first >= 0 for first in open_transactions.values())


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


ENTRIES = st.lists(
    st.builds(
        ProducerEntry,
        producer_id=integers(64),
        epoch=integers(16),
        last_sequence=integers(32),
        last_offset=integers(64),
        offset_delta=integers(32),
        timestamp_ms=integers(64),
        coordinator_epoch=integers(32),
        transaction_first_offset=integers(64),
    ),
    max_size=5,
)


def test_golden_entries() -> None:
    entries = (
        ProducerEntry(4000, 3, 19, 109, 2, 1234, 9, 105),
        ProducerEntry(4001, 7, -1, -1, 0, 1500, 5, -1),
    )
    assert decode_snapshot(TWO) == entries
    assert encode_snapshot(entries) == TWO
    assert encode_snapshot(()) == EMPTY


@given(ENTRIES)
def test_round_trip(entries: list[ProducerEntry]) -> None:
    assert decode_snapshot(encode_snapshot(entries)) == tuple(entries)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "cut short", id="empty"),
        pytest.param(EMPTY[:9], "cut short", id="cut"),
        pytest.param(snapshot((7, 0), version=2), "version 2", id="version"),
        pytest.param(TWO[:-1] + b"\0", "CRC-32C", id="crc"),
        pytest.param(snapshot((7, 0), count=2), "2 producers in", id="count"),
    ],
)
def test_damage_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_snapshot(data)


@given(st.binary(max_size=120))
def test_any_bytes_are_decoded_or_corrupt(data: bytes) -> None:
    for snapshot_bytes in (data, struct.pack(">hI", 1, google_crc32c.value(data)) + data):
        try:
            entries = decode_snapshot(snapshot_bytes)
        except CorruptRecordError:
            assert parse_open_transactions(snapshot_bytes) is None
        else:
            assert encode_snapshot(entries) == snapshot_bytes


@pytest.mark.parametrize(
    "entry",
    [
        ProducerEntry(1 << 63, 0, 0, 0, 0, 0, 0, 0),
        ProducerEntry(0, 1 << 15, 0, 0, 0, 0, 0, 0),
        ProducerEntry(0, 0, 1 << 31, 0, 0, 0, 0, 0),
    ],
)
def test_value_that_does_not_fit_is_refused(entry: ProducerEntry) -> None:
    with pytest.raises(ValueError, match="does not fit into a snapshot"):
        encode_snapshot([entry])
