"""Segments of one partition, as jobs plan with them and send them to tasks.

The rule: segments stay rows of the topic state's Arrow table, at a few hundred bytes each. As dicts
they take some two thousand bytes, so only a few are dicts at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.logformat.array_types import Longs

_CHUNK_ROWS = 256
"""So many entries are dicts at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class EntryRows:
    """Segment entries of one partition in order of offset; `table` has `segment_entries.SCHEMA`."""

    table: pa.Table

    def __len__(self) -> int:
        """Return the number of segments."""
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[SegmentEntry]:
        """Yield the entries in order."""
        for batch in self.table.to_batches(max_chunksize=_CHUNK_ROWS):
            yield from batch.to_pylist()

    def __getitem__(self, number: int) -> SegmentEntry:
        """Return one entry; a negative number counts from the end."""
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        entry: SegmentEntry = self.table.slice(number % len(self), 1).to_pylist()[0]
        return entry

    def part(self, start: int, stop: int) -> EntryRows:
        """Return the segments from number `start` to before `stop`.

        Args:
            start: The number of the first segment.
            stop: The number after the last one.
        """
        return EntryRows(self.table.slice(start, stop - start))

    def numbers(self, column: str) -> Longs:
        """Return a column of integers.

        Args:
            column: The name of the column in `segment_entries.SCHEMA`.
        """
        # Not `to_numpy`, for which Arrow imports pandas: that takes a task's process half a second.
        chunks = [np.from_dlpack(chunk) for chunk in self.table[column].chunks]
        values: Longs = np.concatenate([np.empty(0, np.int64), *chunks])
        return values

    def files(self) -> list[str]:
        """Return the paths of the segments, relative to the root."""
        files: list[str] = self.table["file"].to_pylist()
        return files

    def __reduce__(self) -> tuple[Callable[[bytes], EntryRows], tuple[bytes]]:
        """Pickle only these rows; Arrow would pickle the table that they are a slice of."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return (_unpickle, (sink.getvalue().to_pybytes(),))


def _unpickle(data: bytes) -> EntryRows:
    return EntryRows(pa.ipc.open_stream(data).read_all())
