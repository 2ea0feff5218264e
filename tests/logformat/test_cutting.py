"""Where a log is cut: at an offset, and where its offsets overflow (docs/format.md, 14)."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat import batch as v2
from klog.logformat.cutting import Part, overflows, position_before, split
from tests.encode import GZIP, LZ4, Record, plain
from tests.encode_legacy import wrapper
from tests.logformat.logs import logs

MAX = (1 << 31) - 1


def scanned(batches: list[bytes]) -> v2.Batches:
    log = b"".join(batches)
    return v2.scan(log, 0, len(log))


@given(logs(), st.integers(0, 40))
def test_a_cut_keeps_the_batches_before_an_offset(batches: list[bytes], offset: int) -> None:
    found = scanned(batches)
    ends = [0, *accumulate(map(len, batches))]
    kept = int((found.next_offsets <= offset).sum())
    assert position_before(found, offset) == ends[kept]


def test_a_batch_that_reaches_the_offset_goes_whole() -> None:
    batches = [plain(0, [b"a", b"b", b"c"]), plain(3)]
    found = scanned(batches)
    assert [position_before(found, offset) for offset in range(6)] == [
        0, 0, 0, len(batches[0]), sum(map(len, batches)), sum(map(len, batches)),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 3 * MAX), min_size=1, max_size=12, unique=True).map(sorted))
def test_parts_hold_what_they_were_given(bases: list[int]) -> None:
    batches = [plain(base) for base in bases]
    found = scanned(batches)
    if not overflows(found, 0):
        assert bases[-1] <= MAX
        with pytest.raises(ValueError, match="does not overflow"):
            split(b"".join(batches), found, 0)
        return
    parts = split(b"".join(batches), found, 0)
    assert parts[0].begin == 0
    assert parts[-1].end == sum(map(len, batches))
    for one, other in pairwise(parts):
        assert one.end == other.begin
    for part in parts:
        inside = found.where((found.starts >= part.begin) & (found.starts < part.end))
        assert int(inside.base_offsets[0]) == part.base_offset
        assert not overflows(inside, part.base_offset)
    # As few as there can be: the next part's first batch does not fit.
    for one, other in pairwise(parts):
        assert other.base_offset - one.base_offset > MAX


def test_the_last_offset_that_fits() -> None:
    assert not overflows(scanned([plain(7), plain(7 + MAX)]), 7)
    batches = [plain(7), plain(7 + MAX, [b"a", b"b"])]
    size = len(batches[0])
    assert split(b"".join(batches), scanned(batches), 7) == [
        Part(7, 0, size),
        Part(7 + MAX, size, size + len(batches[1])),
    ]


@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_a_part_that_begins_with_a_wrapper_is_named_by_its_first_message(codec: int) -> None:
    """A wrapper's own offset is its last message's: only opening it tells the first."""
    batches = [
        wrapper([Record(first + i, 1000, b"k", b"v") for i in range(10)], 1, codec)
        for first in (0, MAX + 5, MAX + 15)
    ]
    size = len(batches[0])
    assert split(b"".join(batches), scanned(batches), 0) == [
        Part(0, 0, size),
        Part(MAX + 5, size, sum(map(len, batches))),
    ]
