"""What a cleaning leaves of dirty batches in one pass, from the newest to the oldest.

The rule: read from the end of a log, a record is its key's last one if its key was not met before.
So what is left of a batch is made while it is at hand, and its records are decompressed once, where
marking all keys first takes two readings. What is left is the same; each key has to fit the map.

Batches are given in pieces, each in the order of the log, and cleaned in blocks whose records lie
side by side in memory. A block of records that lie in several parts of memory, for they were
compressed more than those of the block before, is decompressed again where it loses some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.keys import KeyRows, read_keys, read_sections
from klog.logformat.cleaning.marks import SegmentMarks, those_that_count
from klog.logformat.cleaning.offset_map import ABSENT
from klog.logformat.cleaning.rewrite import Fates, Rewrite
from klog.logformat.cleaning.thinned import thin_by, thin_in
from klog.logformat.columnar import PART_BYTES, PART_RECORDS
from klog.logformat.compiled.compiling import Loops
from klog.logformat.index import Mask
from klog.logformat.restamp import Run
from klog.logformat.sections import record_sections
from klog.logformat.transactions import is_control

_BLOCK_BYTES = PART_BYTES // 8 * 7
"""What the records of a block are to take; if they take a little more it is still one part."""
_FIRST_RATIO = 4.0
"""How many times larger records are thought to be than they are compressed, before any are seen."""


class MapFullError(Exception):
    """There are more keys than there is memory for."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a block, in the order of the log; `stays` if it is what was there."""

    runs: tuple[Run, ...]
    stays: bool


class NewestFirst:
    """The dirty part of a partition being cleaned; `keys` holds afterwards all that it has."""

    def __init__(self, loops: Loops, seed: Seed, keys: HashedMap, dirty_from: int) -> None:
        """Begin with a map without keys; what lies below `dirty_from` was cleaned before."""
        self._loops, self._seed, self._keys, self._dirty_from = loops, seed, keys, dirty_from
        self._ratio = _FIRST_RATIO

    def clean(
        self, data: bytes, batches: v2.Batches, aborted: Mask, fates: Fates
    ) -> Iterator[Left]:
        """Give what is left of batches that lie before those given so far, the last block first.

        `aborted` says of each batch whether it is data of an aborted transaction. Raises
        `CorruptRecordError` with the position in `data`, and `MapFullError`.
        """
        for begin, end in self._blocks(batches):
            yield self._cleaned(data, batches.part(begin, end), aborted[begin:end], fates)

    def _blocks(self, batches: v2.Batches) -> Iterator[tuple[int, int]]:
        """Cut batches into blocks, from the last to the first; a block has one at least."""
        counts = batches.headers["count"].astype(np.int64)
        counts[counts == v2.WRAPPER_COUNT] = PART_RECORDS  # Only opening it tells how many.
        records = np.append(0, np.cumsum(counts))
        sizes = np.append(0, np.cumsum(batches.ends - batches.starts))
        end = len(batches)
        while end:
            by_size = np.searchsorted(sizes, sizes[end] - int(_BLOCK_BYTES / self._ratio))
            by_count = np.searchsorted(records, records[end] - PART_RECORDS)
            begin = min(int(max(by_size, by_count)), end - 1)
            yield begin, end
            end = begin

    def _cleaned(self, data: bytes, batches: v2.Batches, aborted: Mask, fates: Fates) -> Left:
        is_own = ~is_control(batches) & (batches.headers["count"] != 0)
        own, is_aborted = batches.where(is_own), aborted[is_own]
        found: list[KeyRows] = []
        thin = thin_by(self._loops.records)
        if own.is_legacy.any():  # Of a wrapper only its records say where its offsets lie.
            found += read_keys(data, own, self._seed)
        elif len(own):
            decoded_bytes = 0
            for part, sections in record_sections(data, own, PART_BYTES):
                rows = read_sections(self._loops.records, part, sections, self._seed)
                found += [rows] if rows is not None else read_keys(data, part, self._seed)
                decoded_bytes += int((sections.ends - sections.starts).sum())
                self._ratio = max(1.0, decoded_bytes / int((own.ends - own.starts).sum()))
                if len(part) == len(own):  # They lie there until more are asked for.
                    thin = thin_in(self._loops.records, part, sections)
                    marks = self._marks(found, own, is_aborted)
                    return _left(data, batches, Rewrite(marks, fates, thin))
        marks = self._marks(found, own, is_aborted)
        return _left(data, batches, Rewrite(marks, fates, thin))

    def _marks(self, found: list[KeyRows], own: v2.Batches, is_aborted: Mask) -> SegmentMarks:
        none = np.zeros(0, np.bool_)
        kept = [self._kept(rows, those_that_count(rows, own, is_aborted)) for rows in found[::-1]]
        bits = np.concatenate([*kept[::-1], none])
        tombstones = np.concatenate([*(rows.tombstones for rows in found), none])
        packed = np.packbits(tombstones).tobytes() if tombstones.any() else b""
        return SegmentMarks(len(bits), np.packbits(bits).tobytes(), packed)

    def _kept(self, rows: KeyRows, counts: Mask) -> Mask:
        """Tell which records are kept, of those that count: what lies behind them was met."""
        wanted: Mask = counts.copy()
        dirty = int(np.searchsorted(rows.offsets, self._dirty_from))
        first, second = rows.first, rows.second
        if not self._keys.claim(first[dirty:], second[dirty:], wanted[dirty:]):
            raise MapFullError
        if dirty:
            wanted[:dirty] &= self._keys.find(first[:dirty], second[:dirty]) == ABSENT
        return wanted


def _left(data: bytes, batches: v2.Batches, rewrite: Rewrite) -> Left:
    runs = tuple(rewrite.clean(data, batches))
    rewrite.close()
    before = slice(int(batches.starts[0]), int(batches.ends[-1]))
    size_bytes = before.stop - before.start
    stays = len(runs) == 1 and len(runs[0].data) == size_bytes and runs[0].data == data[before]
    return Left(runs, stays)
