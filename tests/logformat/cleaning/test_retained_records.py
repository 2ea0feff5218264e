"""Which records are retained: the last ones of the dirty part, and clean ones with other keys."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import decode_records
from klog.logformat.cleaning.key_hash import hash_keys
from klog.logformat.cleaning.offset_map import ALL_KEYS, MIN_MAP_BYTES, KeyRange
from klog.logformat.cleaning.record_keys import RecordKeys
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from klog.logformat.cleaning.retained_records import KeyScan
from tests.logformat.cleaning.cleaning_rounds import SEED, Round, marked, next_offset, scan
from tests.logformat.cleaning.kafka_cleaner_model import aborted_offsets, batches
from tests.logformat.cleaning.random_logs import KEYS, cuts, logs
from tests.support.batch_bytes import (
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
from tests.support.legacy_bytes import plain as legacy_plain
from tests.support.legacy_bytes import wrapper


def records(offset: int, *pairs: tuple[bytes | None, bytes | None], codec: int = NONE) -> bytes:
    """Write a batch of keys and values."""
    rows = [Record(offset + n, 1000, key, value) for n, (key, value) in enumerate(pairs)]
    return batch(rows, attributes=codec)


def signs_of(bitmaps: Sequence[RetainedBitmap]) -> list[str]:
    """Return a sign a record: `x` and `t` are a retained value and tombstone, `.` is neither."""
    signs = []
    for bitmap in bitmaps:
        retained, tombstones = bitmap.masks()
        signs.append("".join(np.where(retained, np.where(tombstones, "t", "x"), ".")))
        assert bitmap.retained_count == int(retained.sum())
    return signs


def retained(*segments: bytes, dirty_from: int = 0) -> list[str]:
    return signs_of(marked(segments, (), Round(dirty_from))[0])


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
def test_retained_records(segments: list[bytes], dirty_from: int, expected: list[str]) -> None:
    assert retained(*segments, dirty_from=dirty_from) == expected


def test_key_like_that_of_a_marker() -> None:
    """Control records are not compared by key: neither replaces the other."""
    key = b"\0\0\0\1"
    log = records(0, (key, b"v")) + marker(1, 1, COMMIT)
    assert retained(log) == ["x"]
    assert retained(marker(0, 1, COMMIT) + records(1, (key, b"v"))) == ["x"]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats(magic: int) -> None:
    rows = [
        Record(n, -1 if magic == 0 else 5, key, b"v") for n, key in enumerate([b"a", b"b", b"a"])
    ]
    assert retained(legacy_plain(rows, magic)) == [".xx"]
    assert retained(wrapper(rows, magic, GZIP)) == [".xx"]
    later = [Record(3, 5, b"b", None)]
    assert retained(wrapper(rows, magic, GZIP), legacy_plain(later, magic)) == ["..x", "t"]
    assert retained(wrapper(rows, magic, GZIP), legacy_plain(later, magic), dirty_from=3) == [
        "x.x",
        "t",
    ]


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
    ids=["values", "no key", "tombstone", "marker", "control", "empty batch", "no batch"],
)
def test_plain_segment_has_only_values(segment: bytes, is_plain: bool) -> None:
    for dirty_from in (0, 2):
        (bitmap,), _ = marked([segment], (), Round(dirty_from))
        assert bitmap.is_plain == is_plain


def test_a_dirty_segment_takes_no_bits_before_its_scan_ends() -> None:
    """Only then is it known which records are retained, and a partition may have many segments."""
    count, data = 1 << 18, plain(0)
    none, numbers = np.zeros(count, np.bool_), np.arange(count)
    keys = RecordKeys(numbers, numbers.view(np.uint64), numbers.view(np.uint64), none, none)
    key_scan = KeyScan(SEED, MIN_MAP_BYTES, decode=lambda *_: iter([keys]))
    tracemalloc.start()
    try:
        for _ in range(8):
            key_scan.start_dirty_segment()
            key_scan.add_dirty(data, scan(data), np.zeros(1, np.bool_), 0)
        key_scan.start_dirty_segment()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < count // 8
    dirty, _ = key_scan.bitmaps()
    assert [bitmap.count for bitmap in dirty] == [count] * 8 + [0]
    assert not any(bitmap.retained_count for bitmap in dirty)


def test_union_retains_what_either_retains() -> None:
    bitmap, other = (
        RetainedBitmap(5, np.packbits(mask).tobytes())
        for mask in ([1, 0, 0, 0, 1], [0, 1, 0, 0, 1])
    )
    assert signs_of([bitmap.union(other)]) == signs_of([other.union(bitmap)]) == ["xx..x"]


@settings(max_examples=50)
@given(st.data())
def test_bitmaps_are_independent_of_key_ranges_and_chunks(data: st.DataObject) -> None:
    segments = data.draw(cuts(data.draw(logs())))
    dirty_from = data.draw(st.integers(0, next_offset(b"".join(segments)) + 1))
    first, _ = hash_keys(pa.array([key or b"" for key in KEYS], pa.binary()), SEED)
    bounds = st.sampled_from([int(hashed) + step for hashed in first for step in (0, 1)])
    ends = data.draw(st.lists(bounds, unique=True, max_size=3))
    bitmaps = None
    for start, end in pairwise([0, *sorted(ends), ALL_KEYS[1]]):
        in_range = scanned_in_chunks(data, segments, dirty_from, KeyRange(start, end))
        bitmaps = in_range if bitmaps is None else _union(bitmaps, in_range)
    assert bitmaps is not None
    expected = marked(segments, (), Round(dirty_from))[0]
    assert signs_of(bitmaps) == signs_of(expected)
    assert [bitmap.is_plain for bitmap in bitmaps] == [bitmap.is_plain for bitmap in expected]


def scanned_in_chunks(
    data: st.DataObject, segments: list[bytes], dirty_from: int, keys: KeyRange
) -> list[RetainedBitmap]:
    """Scan segments a few batches at a time, each one both as dirty and as clean."""
    key_scan = KeyScan(SEED, MIN_MAP_BYTES, keys)
    aborted = list(aborted_offsets(batches(b"".join(segments))))
    for start_segment, add in (
        (key_scan.start_dirty_segment, key_scan.add_dirty),
        (key_scan.start_clean_segment, key_scan.add_clean),
    ):
        for segment in segments:
            start_segment()
            scanned = scan(segment)
            size = data.draw(st.integers(1, len(scanned)))
            for number in range(0, len(scanned), size):
                chunk = scanned.slice(number, number + size)
                mask = np.isin(chunk.base_offsets, aborted)
                add(segment, chunk, mask, dirty_from)
    return _union(*key_scan.bitmaps())


def _union(
    bitmaps: list[RetainedBitmap], other_bitmaps: list[RetainedBitmap]
) -> list[RetainedBitmap]:
    pairs = zip(bitmaps, other_bitmaps, strict=True)
    return [bitmap.union(other) for bitmap, other in pairs]


def test_bitmaps_are_independent_of_decoded_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are decoded a few at a time, and large ones in several parts."""
    segments = [
        plain(0, [b"v"] * 7) + transactional(7, 1, [b"x"] * 9) + records(16, A1, NO_A, B1),
        marker(19, 1, ABORT) + records(20, NULL, A2, codec=ZSTD),
    ]
    expected = ["......x" + "." * 9 + "..x", ".x"]
    assert retained(*segments) == expected
    monkeypatch.setattr(decode_records.decode_parts, "__defaults__", (40, 2, 0, None))
    assert retained(*segments) == expected
    # All clean records are retained whose key no dirty record has.
    assert retained(*segments, dirty_from=17) == ["xxxxxxx" + "." * 9 + "..x", ".x"]


def test_damage_has_its_position() -> None:
    intact, damaged = plain(0), bytearray(plain(1))
    damaged[61] = 0x7F  # The record is longer than its batch.
    log = intact + sealed(bytes(damaged))
    for part in ("dirty", "clean"):
        key_scan = KeyScan(SEED, MIN_MAP_BYTES)
        getattr(key_scan, f"start_{part}_segment")()
        none: Mask = np.zeros(2, np.bool_)
        with pytest.raises(CorruptRecordError) as caught:
            getattr(key_scan, f"add_{part}")(log, scan(log), none, 0)
        assert caught.value.position == len(intact)


def test_key_scan_has_its_key_range() -> None:
    assert KeyScan(SEED, MIN_MAP_BYTES).keys == KeyRange()
    keys = KeyRange(5, 1 << 60)
    assert KeyScan(SEED, MIN_MAP_BYTES, keys).keys == keys
