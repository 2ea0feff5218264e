"""A torn tail: the first damage, where batches could start after it, and padding."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.segments.torn_tail import is_padding, plausible_starts, scan_to_damage
from tests.logformat.golden_vectors import BATCHES, COMPRESSED, CONTROLS, DIRECTORY, LEGACY
from tests.support.batch_bytes import Record, batch, plain
from tests.support.legacy_bytes import message

ALL = [golden.data for golden in BATCHES.values()]
ALL += [data for data, _ in CONTROLS.values()] + list(COMPRESSED.values())


def test_scan_ends_at_the_first_damage() -> None:
    damaged = batch([Record(2, 0)], magic=3)
    batches, damage = scan_to_damage(plain(0) + plain(1) + damaged + plain(3))
    assert batches.base_offsets.tolist() == [0, 1]
    assert damage is not None
    assert damage.position == 2 * len(plain(0))


def test_scan_takes_a_cut_batch_for_no_damage() -> None:
    batches, damage = scan_to_damage(plain(0) + plain(1)[:-1])
    assert batches.base_offsets.tolist() == [0]
    assert damage is None


@given(st.binary(max_size=300))
def test_scan_of_any_bytes(data: bytes) -> None:
    batches, damage = scan_to_damage(plain(0) + data)
    assert batches.base_offsets.tolist()[0] == 0
    assert damage is None or damage.position >= int(batches.ends[-1])


@pytest.mark.parametrize("encoded", ALL)
@pytest.mark.parametrize("junk", [b"", b"\x02", bytes(7), b"\xff" * 100, b"\x02" * 40])
def test_batch_after_junk(encoded: bytes, junk: bytes) -> None:
    data = junk + encoded
    assert len(junk) in plausible_starts(data, 0, len(data)).tolist()


def test_all_batches_of_a_log() -> None:
    data = b"".join(DIRECTORY)
    assert plausible_starts(data, 0, len(data)).tolist() == [
        0, 79, 149, 228, 306, 376, 454, 524, 602,
    ]  # fmt: skip
    assert plausible_starts(data, 7, len(data)).tolist() == [376, 454, 524, 602]
    assert plausible_starts(data, 11, len(data)).tolist() == []


def test_a_batch_must_fit_into_the_room() -> None:
    encoded = plain(0)
    assert plausible_starts(encoded, 0, len(encoded)).tolist() == [0]
    assert plausible_starts(encoded, 0, len(encoded) - 1).tolist() == []
    assert plausible_starts(b"x" + encoded, 0, len(encoded)).tolist() == []
    # The end of a long batch may lie after these bytes.
    assert plausible_starts(plain(0, [b"v" * 5000])[:200], 0, 9000).tolist() == [0]


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(batch([Record(1, 0)], magic=3), id="magic 3"),
        pytest.param(batch([Record(1, 0)], attributes=5), id="codec 5"),
        pytest.param(batch([Record(1, 0)], attributes=0x80), id="attribute bit 7"),
        pytest.param(batch([Record(1, 0)], attributes=0x4000), id="attribute bit 14"),
        pytest.param(batch([Record(1, 0)], length=48), id="length below 49"),
        pytest.param(batch([Record(1, 0)], length=-1), id="negative length"),
        pytest.param(batch([Record(1, 0)], last_offset_delta=-1), id="negative delta"),
        pytest.param(batch([Record(1, 0)], count=-1), id="negative count"),
        pytest.param(batch([Record(1, 0)], count=2), id="more records than offsets"),
    ],
)
def test_implausible_batch(encoded: bytes) -> None:
    assert plausible_starts(encoded, 0, len(encoded)).tolist() == []


def test_fewer_bytes_than_a_header() -> None:
    for size in range(61):
        assert plausible_starts(ALL[0][:size], 0, len(ALL[0])).tolist() == []
    for encoded in LEGACY.values():
        for size in range(26):
            assert plausible_starts(encoded[:size], 0, len(encoded)).tolist() == []


@pytest.mark.parametrize("encoded", LEGACY.values(), ids=LEGACY)
@pytest.mark.parametrize("junk", [b"", b"\x01", bytes(7), b"\xff" * 100, b"\x01" * 40])
def test_message_after_junk(encoded: bytes, junk: bytes) -> None:
    data = junk + encoded
    assert len(junk) in plausible_starts(data, 5, len(data)).tolist()
    assert len(junk) not in plausible_starts(data, 8, len(data)).tolist()
    size = 12 + int.from_bytes(encoded[8:12], "big")
    assert len(junk) not in plausible_starts(data, 5, len(junk) + size - 1).tolist()


def test_message_that_ends_after_the_data() -> None:
    encoded = message(Record(5, 0, b"k" * 100, b"v" * 5000), 1)
    assert plausible_starts(encoded[:61], 0, 9000).tolist() == [0]
    assert plausible_starts(encoded[:200], 0, 9000).tolist() == [0]


def test_message_with_a_length_in_its_first_byte_alone() -> None:
    encoded = message(Record(5, 0, b"k", bytes((1 << 24) - 23)), 1)
    assert encoded[8:12] == b"\1\0\0\0"
    assert 0 in plausible_starts(encoded[:200], 0, len(encoded)).tolist()


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(message(Record(5, 0), 0, attributes=0x08), id="v0 with a timestamp type"),
        pytest.param(message(Record(5, 0), 1, attributes=0x10), id="attribute bit 4"),
        pytest.param(message(Record(5, 0), 1, attributes=4), id="zstd"),
        pytest.param(message(Record(5, 0), 0, length=13), id="v0 of length 13"),
        pytest.param(message(Record(5, 0), 1, length=21), id="v1 of length 21"),
        pytest.param(message(Record(5, 0), 1, length=-1), id="negative length"),
        pytest.param(message(Record(5, 0), 1, length=23) + b"x", id="longer than its fields"),
        pytest.param(message(Record(5, 0, b"key"), 1, length=24), id="shorter than its key"),
        pytest.param(
            message(Record(5, 0), 1, fields=b"\xff\xff\xff\xfe" + bytes(4)), id="length -2"
        ),
    ],
)
def test_implausible_message(encoded: bytes) -> None:
    assert 0 not in plausible_starts(encoded, 0, len(encoded)).tolist()


def test_padding() -> None:
    for size in (0, 1, 1000):
        assert is_padding(bytes(size))
        assert not is_padding(bytes(size) + b"\1")
        assert not is_padding(b"\1" + bytes(size))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes(data: bytes, room: int) -> None:
    for start in plausible_starts(data, 0, room).tolist():
        assert start + (61 if data[start + 16] == 2 else 26) <= len(data)
        assert start + 12 + struct.unpack_from(">i", data, start + 8)[0] <= room
