"""CRC-32s of many pieces at once, against zlib's of each."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import legacy_messages
from klog.logformat.batches.crc32 import all_crcs_match
from tests.support.batch_bytes import Record
from tests.support.legacy_bytes import message


def matches(pieces: list[bytes], gaps: list[bytes], crcs: list[int]) -> bool:
    """Lay pieces between gaps and compare."""
    data, starts, ends = b"", [], []
    for piece, gap in zip(pieces, gaps, strict=True):
        data += gap
        starts.append(len(data))
        data += piece
        ends.append(len(data))
    return all_crcs_match(
        data + b"after", *(np.array(row, np.int64) for row in (starts, ends, crcs))
    )


PIECES = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=9)), min_size=1, max_size=20)


@given(PIECES, st.data())
def test_right_ones_match_and_a_flipped_bit_does_not(
    entries: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    pieces, gaps = [piece for piece, _ in entries], [gap for _, gap in entries]
    crcs = [zlib.crc32(piece) for piece in pieces]
    assert matches(pieces, gaps, crcs)
    number = data.draw(st.integers(0, len(pieces) - 1))
    wrong = [*crcs]
    wrong[number] ^= 1 << data.draw(st.integers(0, 31))
    assert not matches(pieces, gaps, wrong)
    if pieces[number]:
        bit = data.draw(st.integers(0, 8 * len(pieces[number]) - 1))
        flipped = bytearray(pieces[number])
        flipped[bit // 8] ^= 1 << bit % 8
        assert not matches([*pieces[:number], bytes(flipped), *pieces[number + 1 :]], gaps, crcs)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65535, 65536, 70000, (1 << 24) - 1, 1 << 24])
def test_every_digit_of_a_length(size: int) -> None:
    pieces = [b"first", bytes(size), b"last"]
    crcs = [zlib.crc32(piece) for piece in pieces]
    assert matches(pieces, [b"", b"", b""], crcs)
    assert not matches(pieces, [b"", b"", b""], [crcs[0] ^ 1, *crcs[1:]])


@pytest.mark.parametrize("count", [1, 255, 256, 257, 3000])
def test_the_first_bad_one_of_many_is_named(count: int) -> None:
    entries = [message(Record(n, n, b"key", b"%d" % n), n % 2) for n in range(count)]
    bounds = np.cumsum([0, *map(len, entries)])
    starts, ends = bounds[:-1], bounds[1:]
    stored = np.array([int.from_bytes(entry[12:16], "big") for entry in entries], np.int64)
    legacy_messages.check_message_crcs(b"".join(entries), starts, ends, stored)
    for bad in sorted({0, count // 2, count - 1}):
        stored[bad:] ^= 1
        with pytest.raises(CorruptRecordError, match="CRC-32 is") as caught:
            legacy_messages.check_message_crcs(b"".join(entries), starts, ends, stored)
        assert caught.value.position == starts[bad]
        stored[bad:] ^= 1
