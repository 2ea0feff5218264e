"""The live segments of a topic: one large sorted table, and small ones of recent commits.

The rule: a commit costs as much as it adds, however many segments there are. A reader gets one
table, sorted by partition and offset, in which the large one is not copied. Each row has the
version of the commit that added it, by which checkpoints are split into parts. A value of this
class never changes, apart from tables that it computes once and caches.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import segment_entries
from klog.logformat.arrow_values import from_numpy, texts, to_numpy

VERSION_COLUMN = "version"
ROW_SCHEMA = segment_entries.SCHEMA.append(pa.field(VERSION_COLUMN, pa.int64(), nullable=False))
"""A segment and the version of the commit that added it."""

_MAX_RECENT_ROWS = 4096
"""More recent rows than this, and than an eighth of the large table, are merged into it."""
_MAX_INSERTIONS = 64
"""Recent rows at up to this many places are put between slices of the large table; at more, it is
copied."""


class LiveSegments:
    """Live segments of a topic: a sorted table in one chunk, and recent rows."""

    __slots__ = ("_sorted", "_tables")

    def __init__(self, base: pa.Table | None = None, recent: tuple[pa.Table, ...] = ()) -> None:
        """Take tables of `ROW_SCHEMA`.

        Args:
            base: A table in one chunk, sorted by partition and offset.
            recent: Later rows, in any order.
        """
        self._tables = (pa.Table.from_batches([], ROW_SCHEMA) if base is None else base, recent)
        self._sorted: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> LiveSegments:
        """Return the live segments of a table.

        Args:
            rows: A table of `ROW_SCHEMA`, in any order.
        """
        return cls(_sort(rows))

    def __len__(self) -> int:
        """Return the number of segments."""
        base, recent = self._tables
        return len(base) + sum(map(len, recent))

    def __eq__(self, other: object) -> bool:
        """Compare the rows."""
        return isinstance(other, LiveSegments) and bool(self.rows().equals(other.rows()))

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> pa.Table:
        """Return a table of `ROW_SCHEMA`, sorted by partition and offset, computed once."""
        base, recent = self._tables
        if not recent:
            return base
        if self._sorted is None:
            self._sorted = _insert(base, _sort(pa.concat_tables(recent)))
            if self._sorted["file"].num_chunks == 1:
                self._tables = (self._sorted, ())
        return self._sorted

    def segments(self) -> pa.Table:
        """Return a table of `segment_entries.SCHEMA`, sorted by partition and offset."""
        return self.rows().select(segment_entries.SCHEMA.names)

    def plus(self, rows: pa.Table) -> LiveSegments:
        """Return these segments and those of another table.

        Args:
            rows: A table of `ROW_SCHEMA`, in any order.
        """
        base, recent = self._tables
        recent = (*recent, rows)
        # Each table is at least twice as large as the next: there are few, and a row is seldom
        # copied.
        while len(recent) > 1 and len(recent[-2]) < 2 * len(recent[-1]):
            recent = (*recent[:-2], pa.concat_tables(recent[-2:]).combine_chunks())
        if sum(map(len, recent)) > max(_MAX_RECENT_ROWS, len(base) // 8):
            return LiveSegments.of(pa.concat_tables([base, *recent]))
        return LiveSegments(base, recent)

    def without(self, files: Collection[str]) -> LiveSegments:
        """Return these segments without those of some files.

        Args:
            files: The paths of the segments to leave out.
        """
        file_array = texts(list(files))
        base, recent = self._tables  # Read once: the thread of a checkpoint may replace them.
        remaining = (_without(table, file_array) for table in recent)
        return LiveSegments(
            _without(base, file_array), tuple(table for table in remaining if len(table))
        )

    def live_files_among(self, files: Collection[str], after_version: int = -1) -> set[str]:
        """Return those of some files that are live segments.

        Args:
            files: The paths to look for.
            after_version: No commit up to this version added one of them, so older rows are
                skipped.
        """
        file_array = texts(list(files))
        live_files: set[str] = set()
        base, recent = self._tables
        for table in (base, *recent):
            names = table["file"]
            if after_version >= 0:
                later = np.flatnonzero(_numbers(table, VERSION_COLUMN) > after_version)
                if not len(later):
                    continue
                names = names.take(from_numpy(later))
            live_files.update(names.filter(pc.is_in(names, value_set=file_array)).to_pylist())
        return live_files


def _without(table: pa.Table, files: pa.Array) -> pa.Table:
    is_among = pc.is_in(table["file"], value_set=files)
    if not pc.any(is_among).as_py():
        return table
    return table.filter(pc.invert(is_among)).combine_chunks()


def _sort(rows: pa.Table) -> pa.Table:
    partitions, offsets = _numbers(rows, "partition"), _numbers(rows, "base_offset")
    steps = np.diff(partitions)
    if ((steps > 0) | ((steps == 0) & (np.diff(offsets) >= 0))).all():
        return rows.combine_chunks()
    return rows.take(from_numpy(np.lexsort((offsets, partitions)))).combine_chunks()


def _insert(base: pa.Table, rows: pa.Table) -> pa.Table:
    """Return a sorted table with sorted rows in their places."""
    positions = _insert_positions(base, rows)
    cuts, starts = np.unique(positions, return_index=True)
    if len(cuts) > _MAX_INSERTIONS:
        order = np.insert(np.arange(len(base)), positions, len(base) + np.arange(len(rows)))
        return pa.concat_tables([base, rows]).combine_chunks().take(from_numpy(order))
    slices, copied = [], 0
    for cut, start, end in zip(cuts, starts, [*starts[1:], len(rows)], strict=True):
        slices += [base.slice(copied, cut - copied), rows.slice(start, end - start)]
        copied = cut
    slices.append(base.slice(copied))
    return pa.concat_tables([table for table in slices if len(table)])


def _insert_positions(base: pa.Table, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return for each sorted row the number of the row of `base` that it goes before."""
    partitions, offsets = _numbers(base, "partition"), _numbers(base, "base_offset")
    row_partitions, row_offsets = _numbers(rows, "partition"), _numbers(rows, "base_offset")
    positions = np.empty(len(rows), np.int64)
    own_partitions, starts = np.unique(row_partitions, return_index=True)
    low = np.searchsorted(partitions, own_partitions, "left")
    high = np.searchsorted(partitions, own_partitions, "right")
    ends = [*starts[1:], len(rows)]
    for base_start, base_end, start, end in zip(low, high, starts, ends, strict=True):
        within = np.searchsorted(offsets[base_start:base_end], row_offsets[start:end], "right")
        positions[start:end] = base_start + within
    return positions


def _numbers(rows: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a column without a copy, unless it has several chunks."""
    numbers: npt.NDArray[np.int64] = to_numpy(rows[name])
    return numbers
