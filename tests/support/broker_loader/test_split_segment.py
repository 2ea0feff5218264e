"""Where a log is cut: at an offset, and where its offsets overflow (docs/format.md, 14)."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.random_batches import logs
from tests.support.batch_bytes import GZIP, LZ4, Record, plain
from tests.support.broker_loader.split_segment import SegmentPart, overflows, position_before, split
from tests.support.legacy_bytes import wrapper

MAX = (1 << 31) - 1


def scanned(batches: list[bytes]) -> v2.Batches:
    log = b"".join(batches)
    return scan_batches(log, 0, len(log))


@given(logs(), st.integers(0, 40))
def test_position_before_an_offset(batches: list[bytes], offset: int) -> None:
    scanned_batches = scanned(batches)
    ends = [0, *accumulate(map(len, batches))]
    count = int((scanned_batches.next_offsets <= offset).sum())
    assert position_before(scanned_batches, offset) == ends[count]


def test_batch_that_reaches_the_offset_is_dropped() -> None:
    batches = [plain(0, [b"a", b"b", b"c"]), plain(3)]
    scanned_batches = scanned(batches)
    assert [position_before(scanned_batches, offset) for offset in range(6)] == [
        0, 0, 0, len(batches[0]), sum(map(len, batches)), sum(map(len, batches)),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 3 * MAX), min_size=1, max_size=12, unique=True).map(sorted))
def test_parts_hold_all_batches_and_do_not_overflow(bases: list[int]) -> None:
    batches = [plain(base) for base in bases]
    scanned_batches = scanned(batches)
    if not overflows(scanned_batches, 0):
        assert bases[-1] <= MAX
        with pytest.raises(ValueError, match="does not overflow"):
            split(b"".join(batches), scanned_batches, 0)
        return
    parts = split(b"".join(batches), scanned_batches, 0)
    assert parts[0].start == 0
    assert parts[-1].end == sum(map(len, batches))
    for part, next_part in pairwise(parts):
        assert part.end == next_part.start
    for part in parts:
        inside = scanned_batches.where(
            (scanned_batches.starts >= part.start) & (scanned_batches.starts < part.end)
        )
        assert int(inside.base_offsets[0]) == part.base_offset
        assert not overflows(inside, part.base_offset)
    # There are as few parts as possible: the first batch of the next one does not fit.
    for part, next_part in pairwise(parts):
        assert next_part.base_offset - part.base_offset > MAX


def test_largest_offset_that_fits() -> None:
    assert not overflows(scanned([plain(7), plain(7 + MAX)]), 7)
    batches = [plain(7), plain(7 + MAX, [b"a", b"b"])]
    size = len(batches[0])
    assert split(b"".join(batches), scanned(batches), 7) == [
        SegmentPart(7, 0, size),
        SegmentPart(7 + MAX, size, size + len(batches[1])),
    ]


@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_part_that_starts_with_a_wrapper_is_named_by_its_first_message(codec: int) -> None:
    """A wrapper's own offset is that of its last message; the first is in its records."""
    batches = [
        wrapper([Record(first + i, 1000, b"k", b"v") for i in range(10)], 1, codec)
        for first in (0, MAX + 5, MAX + 15)
    ]
    size = len(batches[0])
    assert split(b"".join(batches), scanned(batches), 0) == [
        SegmentPart(0, 0, size),
        SegmentPart(MAX + 5, size, sum(map(len, batches))),
    ]
