"""Blocks of a cleaning from the end: however they are cut, what is left is the same."""

from __future__ import annotations

import numpy as np
import pytest

from klog.logformat.cleaning import newest_first
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.newest_first import Left, MapFullError, NewestFirst
from klog.logformat.cleaning.offset_map import LEAST_BYTES
from klog.logformat.cleaning.rewrite import Fates
from klog.logformat.columnar import PART_BYTES
from klog.logformat.compiled import loops, tables
from klog.logformat.compiled.compiling import Loops
from tests.encode import CODECS, GZIP, NONE, Record, batch, plain
from tests.encode_legacy import wrapper
from tests.logformat.cleaning.rounds import SEED, Round, at_once, runs_of, scan

FATES = Fates(0, 1000)


def blocks_of(data: bytes, map_bytes: int = 1 << 20) -> list[Left]:
    newest = NewestFirst(Loops(loops, tables), SEED, HashedMap(tables, map_bytes), 0)
    batches = scan(data)
    return list(newest.clean(data, batches, np.zeros(len(batches), np.bool_), FATES))


def same(data: bytes) -> None:
    """Hold one segment to what marks and a second reading leave of it."""
    (runs,) = runs_of([data], Round())
    assert at_once([data], Round()) == [b"".join(run.data for run in runs)]


def keyed(base: int, count: int, value: bytes, codec: int) -> bytes:
    own = [Record(base + n, 1000, b"k%d" % (n % 7), value) for n in range(count)]
    return batch(own, attributes=codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("value_bytes", [50, PART_BYTES // 40, PART_BYTES // 4])
def test_records_of_any_size(codec: int, value_bytes: int) -> None:
    """Zeros, of which a block or even a batch has more than lies in one part of memory."""
    data = b"".join(keyed(9 * at, 9, bytes(value_bytes), codec) for at in range(12))
    same(data + keyed(200, 3, b"end", codec))


def test_it_learns_how_much_records_were_compressed() -> None:
    """From the second block on, each has about what lies side by side in memory."""
    drawn = np.random.default_rng(3).bytes(20_000)
    data = b"".join(keyed(9 * at, 9, drawn, NONE) for at in range(120))
    sizes = [sum(len(run.batches) for run in left.runs) for left in blocks_of(data)]
    assert len(sizes) <= len(data) // (newest_first._BLOCK_BYTES // 2)
    same(data)


@pytest.mark.parametrize("most", [1, 8, 9, 10, 40])
def test_blocks_of_few_records(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """One of more records than a block may have is a block; a wrapper is one too."""
    monkeypatch.setattr(newest_first, "PART_RECORDS", most)
    data = b"".join(keyed(9 * at, 9, b"v", GZIP) for at in range(20))
    assert len(blocks_of(data)) == -(-20 // max(most // 9, 1))
    same(data)
    old = plain(0, [b"v"] * 3) + b"".join(
        wrapper([Record(base + at, 1, b"k%d" % at, b"v") for at in range(4)], 1, GZIP)
        for base in (3, 7, 11)
    )
    same(old)


def test_more_keys_than_memory_holds() -> None:
    data = batch([Record(n, 1000, b"%d" % n, b"v") for n in range(LEAST_BYTES // 24)])
    with pytest.raises(MapFullError):
        blocks_of(data, LEAST_BYTES)
    assert [left.stays for left in blocks_of(data)] == [True]


def test_a_batch_of_the_same_size_is_not_the_same() -> None:
    """A tombstone that is kept gives its batch a delete horizon."""
    data = batch([Record(0, 1000, b"a", None)])
    (left,) = blocks_of(data)
    assert (left.stays, len(left.runs[0].data)) == (False, len(data))
