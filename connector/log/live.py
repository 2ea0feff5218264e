"""The live segments of a topic: a large sorted table, and what came since in small ones.

The rule: what a commit adds costs as much as it adds, however many segments there are; who reads
gets one table, sorted by partition and offset, in which the large one stands as it was. Each row
knows the version of the commit that added it, by which checkpoints are cut into parts. A value of
this class never changes; what it works out is kept.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import entries

VERSION = "version"
ROWS = entries.SCHEMA.append(pa.field(VERSION, pa.int64(), nullable=False))
"""A segment and the version that added it."""

_MOST_RECENT = 4096
"""So many recent rows, or an eighth of the large table, are merged into it at last."""
_MOST_CUTS = 64
"""Recent rows at so many places of the large table go between its pieces; at more, it is copied."""


class Live:
    """Live segments; `base` is sorted by partition and offset, and in one piece."""

    __slots__ = ("_sorted", "_tables")

    def __init__(self, base: pa.Table | None = None, recent: tuple[pa.Table, ...] = ()) -> None:
        """Take tables of `ROWS`."""
        self._tables = (ROWS.empty_table() if base is None else base, recent)
        self._sorted: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> Live:
        """Take a table of `ROWS` in any order."""
        return cls(_in_order(rows))

    def __len__(self) -> int:
        """Give the number of segments."""
        base, recent = self._tables
        return len(base) + sum(map(len, recent))

    def __eq__(self, other: object) -> bool:
        """Compare the rows."""
        return isinstance(other, Live) and bool(self.rows().equals(other.rows()))

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> pa.Table:
        """Give `ROWS`, sorted by partition and offset; worked out once."""
        base, recent = self._tables
        if not recent:
            return base
        if self._sorted is None:
            self._sorted = _inserted(base, _in_order(pa.concat_tables(recent)))
            if self._sorted["file"].num_chunks == 1:
                self._tables = (self._sorted, ())
        return self._sorted

    def segments(self) -> pa.Table:
        """Give `entries.SCHEMA`, sorted by partition and offset."""
        return self.rows().select(entries.SCHEMA.names)

    def plus(self, rows: pa.Table) -> Live:
        """Give these segments and more."""
        base, recent = self._tables
        recent = (*recent, rows)
        # Each table is larger than all behind it: there are few, and a row is seldom copied.
        while len(recent) > 1 and len(recent[-2]) < 2 * len(recent[-1]):
            recent = (*recent[:-2], pa.concat_tables(recent[-2:]).combine_chunks())
        if sum(map(len, recent)) > max(_MOST_RECENT, len(base) // 8):
            return Live.of(pa.concat_tables([base, *recent]))
        return Live(base, recent)

    def without(self, files: Collection[str]) -> Live:
        """Give these segments but for some."""
        wanted = pa.array(files, pa.string())
        base, recent = self._tables  # Once: a checkpoint's thread may settle them meanwhile.
        left = (_without(table, wanted) for table in recent)
        return Live(_without(base, wanted), tuple(table for table in left if len(table)))

    def present(self, files: Collection[str], birth: int = -1) -> set[str]:
        """Tell which of some files are those of live segments.

        No commit up to the version `birth` has added any of them: those rows are not looked at.
        """
        wanted = pa.array(files, pa.string())
        found: set[str] = set()
        base, recent = self._tables
        for table in (base, *recent):
            names = table["file"]
            if birth >= 0:
                later = np.flatnonzero(_numbers(table, VERSION) > birth)
                if not len(later):
                    continue
                names = names.take(pa.array(later))
            found.update(names.filter(pc.is_in(names, value_set=wanted)).to_pylist())
        return found


def _without(table: pa.Table, files: pa.Array) -> pa.Table:
    among = pc.is_in(table["file"], value_set=files)
    if not pc.any(among).as_py():
        return table
    return table.filter(pc.invert(among)).combine_chunks()


def _in_order(rows: pa.Table) -> pa.Table:
    partition, offset = _numbers(rows, "partition"), _numbers(rows, "base_offset")
    steps = np.diff(partition)
    if ((steps > 0) | ((steps == 0) & (np.diff(offset) >= 0))).all():
        return rows.combine_chunks()
    return rows.take(pa.array(np.lexsort((offset, partition)))).combine_chunks()


def _inserted(base: pa.Table, rows: pa.Table) -> pa.Table:
    """Put sorted rows where they belong in a sorted table."""
    at = _places(base, rows)
    cuts, firsts = np.unique(at, return_index=True)
    if len(cuts) > _MOST_CUTS:
        order = np.insert(np.arange(len(base)), at, len(base) + np.arange(len(rows)))
        return pa.concat_tables([base, rows]).combine_chunks().take(pa.array(order))
    pieces, done = [], 0
    for cut, first, behind in zip(cuts, firsts, [*firsts[1:], len(rows)], strict=True):
        pieces += [base.slice(done, cut - done), rows.slice(first, behind - first)]
        done = cut
    pieces.append(base.slice(done))
    return pa.concat_tables([piece for piece in pieces if len(piece)])


def _places(base: pa.Table, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Give for each sorted row before which row of a sorted table it belongs."""
    partitions, offsets = _numbers(base, "partition"), _numbers(base, "base_offset")
    mine, starts = _numbers(rows, "partition"), _numbers(rows, "base_offset")
    found = np.empty(len(rows), np.int64)
    wanted, firsts = np.unique(mine, return_index=True)
    low = np.searchsorted(partitions, wanted, "left")
    high = np.searchsorted(partitions, wanted, "right")
    behinds = [*firsts[1:], len(rows)]
    for begin, end, first, behind in zip(low, high, firsts, behinds, strict=True):
        within = np.searchsorted(offsets[begin:end], starts[first:behind], "right")
        found[first:behind] = begin + within
    return found


def _numbers(rows: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Give a column as it lies in memory; one in several pieces is copied."""
    found: npt.NDArray[np.int64] = rows[name].to_numpy()
    return found
