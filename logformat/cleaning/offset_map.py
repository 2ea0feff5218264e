"""The last record of each key, in bounded memory: Kafka's `SkimpyOffsetMap`.

The rule: a key is the 128 bits of its hash. Records are put in the order of the log, so the last
one of a key replaces the ones before. The value is the record's ordinal, its number in the dirty
part. When memory is full the map drops the upper half of the keys, by the first 64 bits, and
`keys` shrinks: another map has to take the others.

Entries are sorted by hash. New ones wait until they are as many as the sorted ones, or as memory
has room for; then both are sorted together. That takes fewer steps a record than finding its slot
in a hash table by whole arrays, and accesses memory in order; `compiled_offset_map` is a hash table
for kernels. Hash and row number are sorted as one number of 64 bits, for which numpy 2 has the
processor's widest instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from klog.logformat.array_types import Longs, Mask
from klog.logformat.cleaning.key_hash import Hashes

ALL_KEYS = (0, 1 << 64)
"""The bounds of the first halves of hashes; the second is exclusive."""
ABSENT = -1
ROW_BYTES = 56
"""An entry while it is sorted: both halves and the ordinal, twice, and its row number."""
MIN_ROWS = 1 << 12
MIN_MAP_BYTES = MIN_ROWS * ROW_BYTES
_MIN_WAITING_ROWS = 1 << 20
"""As many entries wait at least, if there is room."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys whose first half is from `start` to before `end`."""

    start: int = ALL_KEYS[0]
    end: int = ALL_KEYS[1]

    def contains(self, first: Hashes) -> Mask | None:
        """Return which keys are in the range; None if it has all keys.

        Args:
            first: The first halves of their hashes.
        """
        if (self.start, self.end) == ALL_KEYS:
            return None
        in_range: Mask = first >= np.uint64(self.start)
        if self.end < ALL_KEYS[1]:
            in_range &= first < np.uint64(self.end)
        return in_range

    def split(self) -> tuple[KeyRange, KeyRange]:
        """Return its halves.

        Raises:
            ValueError: If it has one hash.
        """
        middle = (self.start + self.end) // 2
        if middle == self.start:
            raise ValueError("a range of one hash cannot be split")
        return KeyRange(self.start, middle), KeyRange(middle, self.end)


def check_memory(max_bytes: int) -> None:
    """Check that a map has memory for a few thousand keys.

    Args:
        max_bytes: What the map may take.

    Raises:
        ValueError: If it has less.
    """
    if max_bytes < MIN_MAP_BYTES:
        raise ValueError(
            f"an offset map of {max_bytes} bytes is too small: use at least {MIN_MAP_BYTES}"
        )


class OffsetMap:
    """The ordinals of the last records of keys."""

    def __init__(self, max_bytes: int, keys: KeyRange | None = None) -> None:
        """Start without keys.

        Args:
            max_bytes: What the map may take.
            keys: The range of keys that it takes, all if None.

        Raises:
            ValueError: As `check_memory`.
        """
        check_memory(max_bytes)
        self._keys = keys or KeyRange()
        self._max_rows = max_bytes // ROW_BYTES
        self._entries = _SortedEntries.none()
        self._lookup: _Lookup | None = None
        self._waiting = _WaitingEntries(self._max_waiting())

    @property
    def keys(self) -> KeyRange:
        """Return the range of keys that the map has, after those dropped for memory."""
        self._merge()
        return self._keys

    def __len__(self) -> int:
        """Return the number of keys."""
        self._merge()
        return len(self._entries)

    def put(self, first: Hashes, second: Hashes, ordinals: Longs) -> None:
        """Put the keys of records; those out of range are left out.

        Args:
            first: The first halves of their hashes.
            second: The second halves.
            ordinals: Of the records, rising.
        """
        start = 0
        while start < len(first):
            chunk = slice(start, start + self._waiting.room)
            start = chunk.stop
            columns = first[chunk], second[chunk], ordinals[chunk]
            in_range = self._keys.contains(columns[0])
            self._waiting.add(*columns, None if in_range is None else np.flatnonzero(in_range))
            if not self._waiting.room:
                self._merge()

    def find(self, first: Hashes, second: Hashes) -> Longs:
        """Return the ordinal of each key's last record, `ABSENT` without one.

        Args:
            first: The first halves of the keys' hashes.
            second: The second halves.
        """
        self._merge()
        ordinals = np.full(len(first), ABSENT, np.int64)
        if len(self._entries):
            if self._lookup is None:
                self._lookup = _Lookup(self._entries)
            self._lookup.find(first, second, ordinals)
        return ordinals

    def ordinals(self) -> Longs:
        """Return the ordinals of all keys' last records, rising."""
        self._merge()
        return np.sort(self._entries.ordinals)

    def _max_waiting(self) -> int:
        """Return how many entries may wait."""
        room = self._max_rows - len(self._entries)
        return min(room, max(_MIN_WAITING_ROWS, len(self._entries)))

    def _merge(self) -> None:
        """Sort the waiting entries into the others; drop keys until there is room for more."""
        if not self._waiting.count:
            return
        columns = self._waiting.after(self._entries)
        self._entries, self._lookup = _SortedEntries.none(), None
        self._waiting = _WaitingEntries(0)
        self._entries = _last_of_each_key(columns)
        while 4 * len(self._entries) > 3 * self._max_rows:
            self._keys, _ = self._keys.split()
            self._entries = self._entries.below(self._keys.end)
        self._waiting = _WaitingEntries(self._max_waiting())


@dataclass(frozen=True, slots=True)
class _SortedEntries:
    """Keys in order of their hashes, and the ordinals of their last records."""

    first: Hashes
    second: Hashes
    ordinals: Longs

    def __len__(self) -> int:
        return len(self.first)

    @staticmethod
    def none() -> _SortedEntries:
        none = np.empty(0, np.uint64)
        return _SortedEntries(none, none, none.view(np.int64))

    def below(self, end: int) -> _SortedEntries:
        """Return the keys whose first half is below a number."""
        rows = slice(0, int(np.searchsorted(self.first, np.uint64(end))))
        return _SortedEntries(
            self.first[rows].copy(), self.second[rows].copy(), self.ordinals[rows].copy()
        )


class _Lookup:
    """Finds keys among sorted entries.

    Hashes are spread evenly, so the high bits of one give its row to within a few.
    """

    def __init__(self, entries: _SortedEntries) -> None:
        self._entries = entries
        self._min_first, self._max_first = entries.first[0], entries.first[-1]
        width = int(self._max_first) - int(self._min_first)
        self._shift = np.uint64(max(width.bit_length() - len(entries).bit_length(), 0))
        bounds = np.arange((width >> int(self._shift)) + 1, dtype=np.uint64)
        bounds <<= self._shift
        bounds += self._min_first
        self._first_rows = np.searchsorted(entries.first, bounds)

    def find(self, first: Hashes, second: Hashes, ordinals: Longs) -> None:
        """Fill in the ordinal of each key that is there."""
        entries, last_row = self._entries, len(self._entries) - 1
        numbers = np.flatnonzero((first >= self._min_first) & (first <= self._max_first))
        first, second = first[numbers], second[numbers]
        rows = self._first_rows[((first - self._min_first) >> self._shift).view(np.int64)]
        while len(rows):
            row_first = _take(entries.first, rows)
            is_hit = (row_first == first) & (_take(entries.second, rows) == second)
            hits = np.flatnonzero(is_hit)
            ordinals[numbers[hits]] = entries.ordinals[rows[hits]]
            # A later row may be the key, unless this one is greater.
            remaining = np.flatnonzero((row_first <= first) & ~is_hit & (rows < last_row))
            numbers, first, second = numbers[remaining], first[remaining], second[remaining]
            rows = rows[remaining] + 1


class _WaitingEntries:
    """Entries in the order in which they came; memory without an entry is not touched."""

    def __init__(self, max_rows: int) -> None:
        self.count = 0
        self._first, self._second = np.empty((2, max_rows), np.uint64)
        self._ordinals = np.empty(max_rows, np.int64)

    @property
    def room(self) -> int:
        """Return how many more entries fit."""
        return len(self._ordinals) - self.count

    def add(
        self, first: Hashes, second: Hashes, ordinals: Longs, numbers: Longs | None = None
    ) -> None:
        """Copy entries, only those of some numbers if these are given."""
        count = len(first) if numbers is None else len(numbers)
        rows = slice(self.count, self.count + count)
        self._first[rows] = first if numbers is None else first[numbers]
        self._second[rows] = second if numbers is None else second[numbers]
        self._ordinals[rows] = ordinals if numbers is None else ordinals[numbers]
        self.count += count

    def after(self, entries: _SortedEntries) -> list[list[npt.NDArray[Any]]]:
        """Return the columns of sorted entries and then of these, each in two arrays."""
        return [
            [entries.first, self._first[: self.count]],
            [entries.second, self._second[: self.count]],
            [entries.ordinals, self._ordinals[: self.count]],
        ]


def _last_of_each_key(columns: list[list[npt.NDArray[Any]]]) -> _SortedEntries:
    """Return the last entry of each key, in the order of keys; empties the list.

    Each array is dropped when it is no longer needed: this is the peak of memory.
    """
    ordinals, second, first = (np.concatenate(columns.pop()) for _ in range(3))
    numbers, has_same_bits = _order_by_high_bits(first)
    sorted_first, sorted_second = _take(first, numbers), _take(second, numbers)
    is_same_key = _is_same_key(sorted_first, sorted_second)
    if not np.array_equal(is_same_key, has_same_bits):
        # Few hashes differ in low bits alone: these are sorted by all bits.
        del sorted_first, sorted_second
        unsorted = _rows_of_runs(has_same_bits, np.flatnonzero(has_same_bits & ~is_same_key))
        group = numbers[unsorted]
        numbers[unsorted] = group[np.lexsort((second[group], first[group]))]  # It is stable.
        sorted_first, sorted_second = _take(first, numbers), _take(second, numbers)
        is_same_key = _is_same_key(sorted_first, sorted_second)
    del first, second, has_same_bits
    last_rows = np.flatnonzero(np.append(~is_same_key, True))
    sorted_first = sorted_first[last_rows]
    sorted_second = sorted_second[last_rows]
    numbers = numbers[last_rows]
    return _SortedEntries(sorted_first, sorted_second, ordinals[numbers])


def _is_same_key(first: Hashes, second: Hashes) -> Mask:
    """Return for each row but the first whether its key is that of the row before."""
    is_same: Mask = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    return is_same


def _order_by_high_bits(first: Hashes) -> tuple[Longs, Mask]:
    """Return the row numbers in the order of high bits; equal ones stay in order.

    The mask is, for each row but the first, whether its high bits are those of the row before.
    """
    bits = np.uint64(len(first).bit_length())
    mask = (np.uint64(1) << bits) - np.uint64(1)
    order = first & ~mask
    order |= np.arange(len(first), dtype=np.uint64)
    order.sort()
    numbers: Longs = (order & mask).view(np.int64)
    order >>= bits
    return numbers, order[1:] == order[:-1]


def _take(values: Hashes, numbers: Longs) -> Hashes:
    """Take values by number; "clip" skips numpy's check of bounds, which all are within."""
    taken: Hashes = values.take(numbers, mode="clip")
    return taken


def _rows_of_runs(has_same_bits: Mask, rows: Longs) -> Longs:
    """Return the numbers of all rows in the runs of equal high bits that some rows are in.

    `has_same_bits` is that of `_order_by_high_bits`; `rows` rise.
    """
    edges = np.concatenate(([-1], np.flatnonzero(~has_same_bits), [len(has_same_bits)]))
    runs = np.searchsorted(edges, rows)  # They rise, as `rows` do.
    runs = runs[np.append(True, runs[1:] != runs[:-1])]
    starts = edges[runs - 1] + 1
    counts = edges[runs] + 1 - starts
    in_run = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers: Longs = np.repeat(starts, counts) + in_run
    return numbers
