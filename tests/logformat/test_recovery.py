"""What a damaged tail is: where batches could begin, and what is padding."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.recovery import is_padding, plausible_starts
from tests.encode import Record, batch, plain
from tests.logformat.golden import BATCHES, COMPRESSED, CONTROLS, DIRECTORY

ALL = [golden.data for golden in BATCHES.values()]
ALL += [data for data, _ in CONTROLS.values()] + list(COMPRESSED.values())


@pytest.mark.parametrize("one", ALL)
@pytest.mark.parametrize("junk", [b"", b"\x02", bytes(7), b"\xff" * 100, b"\x02" * 40])
def test_a_batch_behind_junk_is_found(one: bytes, junk: bytes) -> None:
    data = junk + one
    assert len(junk) in plausible_starts(data, 0, len(data)).tolist()


def test_all_batches_of_a_log_are_found() -> None:
    data = b"".join(DIRECTORY)
    assert plausible_starts(data, 0, len(data)).tolist() == [
        0, 79, 149, 228, 306, 376, 454, 524, 602,
    ]  # fmt: skip
    assert plausible_starts(data, 7, len(data)).tolist() == [376, 454, 524, 602]
    assert plausible_starts(data, 11, len(data)).tolist() == []


def test_a_batch_must_fit_into_the_room() -> None:
    one = plain(0)
    assert plausible_starts(one, 0, len(one)).tolist() == [0]
    assert plausible_starts(one, 0, len(one) - 1).tolist() == []
    assert plausible_starts(b"x" + one, 0, len(one)).tolist() == []
    # The rest of a long batch may lie beyond the bytes at hand.
    assert plausible_starts(plain(0, [b"v" * 5000])[:200], 0, 9000).tolist() == [0]


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(batch([Record(1, 0)], magic=1), id="magic 1"),
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
def test_what_no_batch_can_say(one: bytes) -> None:
    assert plausible_starts(one, 0, len(one)).tolist() == []


def test_fewer_bytes_than_a_header() -> None:
    for size in range(61):
        assert plausible_starts(ALL[0][:size], 0, 1 << 30).tolist() == []


def test_padding() -> None:
    for size in (0, 1, 1000):
        assert is_padding(bytes(size))
        assert not is_padding(bytes(size) + b"\1")
        assert not is_padding(b"\1" + bytes(size))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes(data: bytes, room: int) -> None:
    for at in plausible_starts(data, 0, room).tolist():
        assert at + 61 <= len(data)
        assert at + 12 + struct.unpack_from(">i", data, at + 8)[0] <= room
