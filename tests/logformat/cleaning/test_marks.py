"""Which records are kept: the last ones of the dirty part, and what none of them replaces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat import columnar
from klog.logformat.cleaning.key_hash import hash_keys
from klog.logformat.cleaning.marks import Marking, SegmentMarks
from klog.logformat.cleaning.offset_map import ALL_KEYS, LEAST_BYTES, KeyRange
from klog.logformat.index import Mask
from tests.encode import (
    ABORT,
    COMMIT,
    GZIP,
    NONE,
    ZSTD,
    Record,
    batch,
    control,
    marker,
    plain,
    sealed,
    transactional,
)
from tests.encode_legacy import plain as legacy_plain
from tests.encode_legacy import wrapper
from tests.logformat.cleaning.drawn import KEYS, cuts, logs
from tests.logformat.cleaning.kafkas_rules import aborted, batches
from tests.logformat.cleaning.rounds import SEED, Round, marked, next_offset, scan


def records(offset: int, *pairs: tuple[bytes | None, bytes | None], codec: int = NONE) -> bytes:
    """Write a batch of keys and values."""
    own = [Record(offset + n, 1000, key, value) for n, (key, value) in enumerate(pairs)]
    return batch(own, attributes=codec)


def bits(marks: Sequence[SegmentMarks]) -> list[str]:
    """Say of each record whether it stays: `x` it does, `t` so does a tombstone, `.` it goes."""
    found = []
    for one in marks:
        kept, tombstones = one.masks()
        signs = np.where(kept, np.where(tombstones, "t", "x"), ".")
        found.append("".join(signs))
        assert one.kept_count == int(kept.sum())
    return found


def kept(*segments: bytes, dirty_from: int = 0) -> list[str]:
    return bits(marked(segments, (), Round(dirty_from))[0])


A1, A2, B1 = (b"a", b"1"), (b"a", b"2"), (b"b", b"1")
NO_A, NULL, NOTHING = (b"a", None), (None, b"1"), (None, None)


@pytest.mark.parametrize(
    ("segments", "dirty_from", "expected"),
    [
        ([records(0, A1, A2, B1)], 0, [".xx"]),
        ([records(0, A1, A2), records(2, B1, A1)], 0, ["..", "xx"]),
        ([records(0, A1), records(1, A2)], 1, [".", "x"]),
        ([records(0, A1, A2), records(2, B1)], 2, ["xx", "x"]),
        ([records(0, A1, B1, A2)], 1, [".xx"]),
        ([records(0, A1, B1, A2)], 2, [".xx"]),
        ([records(0, A1, B1, B1)], 2, ["x.x"]),
        ([records(0, A1, A1) + records(5, B1, A1)], 3, ["..xx"]),
        ([records(0, A1, NO_A)], 0, [".t"]),
        ([records(0, NO_A, A1)], 0, [".x"]),
        ([records(0, NO_A), records(1, B1)], 1, ["t", "x"]),
        ([records(0, NULL, NOTHING, A1)], 0, ["..x"]),
        ([records(0, NULL, NOTHING, A1), records(3, B1)], 3, ["..x", "x"]),
        ([records(0, (b"", b"1"), NULL, (b"", b"2"))], 0, ["..x"]),
        ([transactional(0, 1), plain(1), marker(2, 1, COMMIT)], 0, [".", "x", ""]),
        ([plain(0), transactional(1, 1), marker(2, 1, ABORT)], 0, ["x", ".", ""]),
        ([plain(0), transactional(1, 1), marker(2, 1, COMMIT)], 0, [".", "x", ""]),
        ([transactional(0, 1), plain(1), marker(2, 1, ABORT)], 1, [".", "x", ""]),
        ([plain(0, [b"1", None]) + marker(2, 1, COMMIT) + plain(3)], 0, ["..x"]),
        ([records(0, A1, codec=ZSTD), records(1, A2, codec=GZIP)], 0, [".", "x"]),
        ([batch(base_offset=3, last_offset_delta=1)], 0, [""]),
        ([], 0, []),
        ([b"", records(0, A1)], 0, ["", "x"]),
    ],
)
def test_what_stays(segments: list[bytes], dirty_from: int, expected: list[str]) -> None:
    assert kept(*segments, dirty_from=dirty_from) == expected


def test_a_key_like_a_markers_is_a_key() -> None:
    """Control records are never compared by key: neither loses to the other."""
    named = b"\0\0\0\1"
    log = records(0, (named, b"v")) + marker(1, 1, COMMIT)
    assert kept(log) == ["x"]
    assert kept(marker(0, 1, COMMIT) + records(1, (named, b"v"))) == ["x"]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats(magic: int) -> None:
    own = [
        Record(n, -1 if magic == 0 else 5, key, b"v") for n, key in enumerate([b"a", b"b", b"a"])
    ]
    assert kept(legacy_plain(own, magic)) == [".xx"]
    assert kept(wrapper(own, magic, GZIP)) == [".xx"]
    later = [Record(3, 5, b"b", None)]
    assert kept(wrapper(own, magic, GZIP), legacy_plain(later, magic)) == ["..x", "t"]
    assert kept(wrapper(own, magic, GZIP), legacy_plain(later, magic), dirty_from=3) == ["x.x", "t"]


@pytest.mark.parametrize(
    ("segment", "is_plain"),
    [
        (records(0, A1, A2), True),
        (records(0, NULL), True),
        (records(0, NO_A, A1), False),
        (records(0, A1) + marker(1, 1, COMMIT), False),
        (records(0, A1) + control(1, 2), False),
        (records(0, A1) + batch(base_offset=1), False),
        (b"", True),
    ],
    ids=["values", "no key", "tombstone", "marker", "control", "empty batch", "nothing"],
)
def test_a_plain_segment_has_nothing_besides_values(segment: bytes, is_plain: bool) -> None:
    for dirty_from in (0, 2):
        (marks,), _ = marked([segment], (), Round(dirty_from))
        assert marks.is_plain == is_plain


def test_what_either_keeps_is_kept() -> None:
    one, other = (
        SegmentMarks(5, np.packbits(mask).tobytes()) for mask in ([1, 0, 0, 0, 1], [0, 1, 0, 0, 1])
    )
    assert bits([one.joined(other)]) == bits([other.joined(one)]) == ["xx..x"]


@settings(max_examples=50)
@given(st.data())
def test_ranges_of_keys_and_chunks_change_nothing(data: st.DataObject) -> None:
    """Keys in any number of ranges, batches in any pieces: joined they are what one pass gives."""
    segments = data.draw(cuts(data.draw(logs())))
    dirty_from = data.draw(st.integers(0, next_offset(b"".join(segments)) + 1))
    first, _ = hash_keys(pa.array([key or b"" for key in KEYS], pa.binary()), SEED)
    at_keys = st.sampled_from([int(one) + more for one in first for more in (0, 1)])
    ends = data.draw(st.lists(at_keys, unique=True, max_size=3))
    found = None
    for begin, end in pairwise([0, *sorted(ends), ALL_KEYS[1]]):
        marks = in_pieces(data, segments, dirty_from, KeyRange(begin, end))
        found = marks if found is None else _joined(found, marks)
    assert found is not None
    expected = marked(segments, (), Round(dirty_from))[0]
    assert bits(found) == bits(expected)
    assert [one.is_plain for one in found] == [one.is_plain for one in expected]


def in_pieces(
    data: st.DataObject, segments: list[bytes], dirty_from: int, keys: KeyRange
) -> list[SegmentMarks]:
    """Mark segments that are given a few batches at a time; each is both dirty and clean."""
    marking = Marking(SEED, LEAST_BYTES, keys)
    gone = list(aborted(batches(b"".join(segments))))
    for begin, add in (
        (marking.begin_dirty, marking.add_dirty),
        (marking.begin_clean, marking.add_clean),
    ):
        for segment in segments:
            begin()
            some = scan(segment)
            size = data.draw(st.integers(1, len(some)))
            for at in range(0, len(some), size):
                piece = some.part(at, at + size)
                mask = np.isin(piece.base_offsets, gone)
                add(segment, piece, mask, dirty_from)
    return _joined(*marking.marks())


def _joined(some: list[SegmentMarks], others: list[SegmentMarks]) -> list[SegmentMarks]:
    return [one.joined(other) for one, other in zip(some, others, strict=True)]


def test_records_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are decoded a few at a time, and large ones in several parts."""
    segments = [
        plain(0, [b"v"] * 7) + transactional(7, 1, [b"x"] * 9) + records(16, A1, NO_A, B1),
        marker(19, 1, ABORT) + records(20, NULL, A2, codec=ZSTD),
    ]
    expected = ["......x" + "." * 9 + "..x", ".x"]
    assert kept(*segments) == expected
    monkeypatch.setattr(columnar.decode_parts, "__defaults__", (40, 2, 0, None))
    assert kept(*segments) == expected
    # Of the key that no dirty record has, all that was cleaned before stays.
    assert kept(*segments, dirty_from=17) == ["xxxxxxx" + "." * 9 + "..x", ".x"]


def test_damage_has_its_place() -> None:
    good, bad = plain(0), bytearray(plain(1))
    bad[61] = 0x7F  # The record is longer than its batch.
    log = good + sealed(bytes(bad))
    for add in ("add_dirty", "add_clean"):
        marking = Marking(SEED, LEAST_BYTES)
        getattr(marking, add.replace("add", "begin"))()
        none: Mask = np.zeros(2, np.bool_)
        with pytest.raises(CorruptRecordError) as caught:
            getattr(marking, add)(log, scan(log), none, 0)
        assert caught.value.position == len(good)


def test_a_pass_says_which_keys_it_knows() -> None:
    assert Marking(SEED, LEAST_BYTES).keys == KeyRange()
    own = KeyRange(5, 1 << 60)
    assert Marking(SEED, LEAST_BYTES, own).keys == own
