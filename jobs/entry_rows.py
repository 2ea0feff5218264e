"""Some of a state's segments, as a job plans with them and hands them to its tasks.

The rule: they stay rows of the state's own table, where one takes a few hundred bytes; as dicts,
which take some two thousand, they are made a few at a time, of those that are being worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector.log.entries import Entry
from klog.logformat.index import Longs

_AT_ONCE = 256


@dataclass(frozen=True, slots=True, eq=False)
class EntryRows:
    """Segments of one partition in order of offset; the table has `entries.SCHEMA`."""

    table: pa.Table

    def __len__(self) -> int:
        """Give the number of segments."""
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Entry]:
        """Give the entries, in order."""
        for some in self.table.to_batches(max_chunksize=_AT_ONCE):
            yield from some.to_pylist()

    def __getitem__(self, number: int) -> Entry:
        """Give one entry; a negative number counts from the end."""
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        found: Entry = self.table.slice(number % len(self), 1).to_pylist()[0]
        return found

    def part(self, begin: int, end: int) -> EntryRows:
        """Give those from number `begin` to before `end`."""
        return EntryRows(self.table.slice(begin, end - begin))

    def numbers(self, column: str) -> Longs:
        """Give a column of numbers."""
        # Not `to_numpy`, for which Arrow imports pandas: that takes a task's process half a second.
        chunks = [np.from_dlpack(one) for one in self.table[column].chunks]
        found: Longs = np.concatenate([np.empty(0, np.int64), *chunks])
        return found

    def files(self) -> list[str]:
        """Give the paths of the segments, relative to the root."""
        found: list[str] = self.table["file"].to_pylist()
        return found

    def __reduce__(self) -> tuple[Callable[[bytes], EntryRows], tuple[bytes]]:
        """Pickle these rows alone: Arrow pickles all of the table that they are a slice of."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return (_unpickled, (sink.getvalue().to_pybytes(),))


def _unpickled(data: bytes) -> EntryRows:
    return EntryRows(pa.ipc.open_stream(data).read_all())
