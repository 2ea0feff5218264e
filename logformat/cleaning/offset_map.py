"""The last place of each key in a log, in memory of a given size: Kafka's `SkimpyOffsetMap`.

The rule: a key is the 128 bits of its hash. Records are put in the order of the log, so of one key
the last that is put stays. When memory is full the map gives up the upper half of the keys, by the
first 64 bits, and says up to where it still knows them: whoever wants the others makes another map
for them.

Keys lie in the order of their hashes. What is put waits until there is as much of it as of keys, or
as memory has room for; then both are sorted into one, which takes fewer steps a record than finding
each one's slot in a hash table by whole arrays, and goes through memory in order; `hashed_map.py`
has a table with compiled loops. Hash and number of a row are sorted as one number of 64 bits, for
which numpy 2 has the processor's widest instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from klog.logformat.cleaning.key_hash import Hashes
from klog.logformat.index import Longs, Mask

ALL_KEYS = (0, 1 << 64)
"""The range of the first halves of hashes: from the first number to before the second."""
ABSENT = -1
ROW_BYTES = 56
"""What a row takes while it is sorted: both halves and the place, twice, and its number."""
LEAST_ROWS = 1 << 12
LEAST_BYTES = LEAST_ROWS * ROW_BYTES
_WAITING = 1 << 20
"""As many rows wait at least, if there is room."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys whose first half is from `begin` to before `end`."""

    begin: int = ALL_KEYS[0]
    end: int = ALL_KEYS[1]

    def holds(self, first: Hashes) -> npt.NDArray[np.bool_] | None:
        """Tell which hashes are in it; None if all are, whatever they are."""
        if (self.begin, self.end) == ALL_KEYS:
            return None
        inside: npt.NDArray[np.bool_] = first >= np.uint64(self.begin)
        if self.end < ALL_KEYS[1]:
            inside &= first < np.uint64(self.end)
        return inside

    def halves(self) -> tuple[KeyRange, KeyRange]:
        """Cut it in two. Raises `ValueError` where one hash is left."""
        middle = (self.begin + self.end) // 2
        if middle == self.begin:
            raise ValueError("one key is not to be cut in two")
        return KeyRange(self.begin, middle), KeyRange(middle, self.end)


def check_memory(most_bytes: int) -> None:
    """Raise `ValueError` for less memory than a few thousand keys take."""
    if most_bytes < LEAST_BYTES:
        raise ValueError(f"an offset map of {most_bytes} bytes: the least is {LEAST_BYTES}")


class OffsetMap:
    """Places by key."""

    def __init__(self, most_bytes: int, keys: KeyRange | None = None) -> None:
        """Begin empty. Raises `ValueError` for less memory than a few thousand keys take."""
        check_memory(most_bytes)
        self._keys = keys or KeyRange()
        self._most_rows = most_bytes // ROW_BYTES
        self._rows = _Rows.none()
        self._lookup: _Lookup | None = None
        self._waiting = _Waiting(self._most_waiting())

    @property
    def keys(self) -> KeyRange:
        """Give the keys that it knows, of those that it was asked to know."""
        self._settle()
        return self._keys

    def __len__(self) -> int:
        """Give the number of keys."""
        self._settle()
        return len(self._rows)

    def put(self, first: Hashes, second: Hashes, places: Longs) -> None:
        """Say the places of records, which rise; those of keys out of range are left out."""
        begin = 0
        while begin < len(first):
            some = slice(begin, begin + self._waiting.room)
            begin = some.stop
            given = first[some], second[some], places[some]
            inside = self._keys.holds(given[0])
            self._waiting.add(*given, None if inside is None else np.flatnonzero(inside))
            if not self._waiting.room:
                self._settle()

    def find(self, first: Hashes, second: Hashes) -> Longs:
        """Give the last place of each key, `ABSENT` where there is none."""
        self._settle()
        found = np.full(len(first), ABSENT, np.int64)
        if len(self._rows):
            if self._lookup is None:
                self._lookup = _Lookup(self._rows)
            self._lookup.find(first, second, found)
        return found

    def places(self) -> Longs:
        """Give the last places of all keys, rising."""
        self._settle()
        return np.sort(self._rows.places)

    def _most_waiting(self) -> int:
        """Tell how many rows may wait."""
        return min(self._most_rows - len(self._rows), max(_WAITING, len(self._rows)))

    def _settle(self) -> None:
        """Sort what waits into what is known; give up keys until there is room for more to wait."""
        if not self._waiting.count:
            return
        columns = self._waiting.behind(self._rows)
        self._rows, self._lookup, self._waiting = _Rows.none(), None, _Waiting(0)
        self._rows = _last_of_each_key(columns)
        while 4 * len(self._rows) > 3 * self._most_rows:
            self._keys, _ = self._keys.halves()
            self._rows = self._rows.below(self._keys.end)
        self._waiting = _Waiting(self._most_waiting())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Keys and their places."""

    first: Hashes
    second: Hashes
    places: Longs

    def __len__(self) -> int:
        return len(self.first)

    @staticmethod
    def none() -> _Rows:
        none = np.empty(0, np.uint64)
        return _Rows(none, none, none.view(np.int64))

    def below(self, end: int) -> _Rows:
        """Give those of keys whose first half is below a number."""
        own = slice(0, int(np.searchsorted(self.first, np.uint64(end))))
        return _Rows(self.first[own].copy(), self.second[own].copy(), self.places[own].copy())


class _Lookup:
    """Finds keys among rows in their order.

    Hashes lie evenly: where in the range one lies says its row to within a few.
    """

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._least, self._most = rows.first[0], rows.first[-1]
        span = int(self._most) - int(self._least)
        self._shift = np.uint64(max(span.bit_length() - len(rows).bit_length(), 0))
        bounds = np.arange((span >> int(self._shift)) + 1, dtype=np.uint64)
        bounds <<= self._shift
        bounds += self._least
        self._starts = np.searchsorted(rows.first, bounds)

    def find(self, first: Hashes, second: Hashes, found: Longs) -> None:
        """Fill in the place of each key that is there."""
        rows, end = self._rows, len(self._rows)
        numbers = np.flatnonzero((first >= self._least) & (first <= self._most))
        first, second = first[numbers], second[numbers]
        at = self._starts[((first - self._least) >> self._shift).view(np.int64)]
        while len(at):
            seen = _taken(rows.first, at)
            hit = (seen == first) & (_taken(rows.second, at) == second)
            hits = np.flatnonzero(hit)
            found[numbers[hits]] = rows.places[at[hits]]
            # What lies behind may be the key, unless a greater one was seen.
            other = np.flatnonzero((seen <= first) & ~hit & (at < end - 1))
            numbers, first, second = numbers[other], first[other], second[other]
            at = at[other] + 1


class _Waiting:
    """Rows in the order in which they came; memory that no row has come to is not taken."""

    def __init__(self, capacity: int) -> None:
        self.count = 0
        self._first, self._second = np.empty((2, capacity), np.uint64)
        self._places = np.empty(capacity, np.int64)

    @property
    def room(self) -> int:
        """Give how many more there is room for."""
        return len(self._places) - self.count

    def add(
        self, first: Hashes, second: Hashes, places: Longs, numbers: Longs | None = None
    ) -> None:
        """Take copies of rows, those of some numbers if these are given."""
        count = len(first) if numbers is None else len(numbers)
        here = slice(self.count, self.count + count)
        self._first[here] = first if numbers is None else first[numbers]
        self._second[here] = second if numbers is None else second[numbers]
        self._places[here] = places if numbers is None else places[numbers]
        self.count += count

    def behind(self, rows: _Rows) -> list[list[npt.NDArray[Any]]]:
        """Give the columns of these behind some that were sorted before, each in parts."""
        return [
            [rows.first, self._first[: self.count]],
            [rows.second, self._second[: self.count]],
            [rows.places, self._places[: self.count]],
        ]


def _last_of_each_key(columns: list[list[npt.NDArray[Any]]]) -> _Rows:
    """Give the last row of each key, in the order of keys; empties the list.

    What is not needed any more goes at once: all of this is held in memory together.
    """
    places, second, first = (np.concatenate(columns.pop()) for _ in range(3))
    numbers, meets = _by_high_bits(first)
    ordered, others = _taken(first, numbers), _taken(second, numbers)
    same = _same(ordered, others)
    if not np.array_equal(same, meets):
        # Of hashes few keys differ only in low bits: these are put in order by all bits.
        del ordered, others
        unsure = _in_runs(meets, np.flatnonzero(meets & ~same))
        some = numbers[unsure]
        numbers[unsure] = some[np.lexsort((second[some], first[some]))]  # It is stable.
        ordered, others = _taken(first, numbers), _taken(second, numbers)
        same = _same(ordered, others)
    del first, second, meets
    last = np.flatnonzero(np.append(~same, True))
    ordered = ordered[last]
    others = others[last]
    numbers = numbers[last]
    return _Rows(ordered, others, places[numbers])


def _same(first: Hashes, second: Hashes) -> Mask:
    """Tell of each row but the first whether its key is that of the one before."""
    same: Mask = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    return same


def _by_high_bits(first: Hashes) -> tuple[Longs, Mask]:
    """Give the numbers of rows in the order of their high bits, those that agree as they came.

    Tells of each row but the first whether it agrees with the one before.
    """
    bits = np.uint64(len(first).bit_length())
    mask = (np.uint64(1) << bits) - np.uint64(1)
    order = first & ~mask
    order |= np.arange(len(first), dtype=np.uint64)
    order.sort()
    numbers: Longs = (order & mask).view(np.int64)
    order >>= bits
    return numbers, order[1:] == order[:-1]


def _taken(values: Hashes, numbers: Longs) -> Hashes:
    """Take values by number; all are known to be within, which numpy need not ask again."""
    taken: Hashes = values.take(numbers, mode="clip")
    return taken


def _in_runs(meets: Mask, some: Longs) -> Longs:
    """Give the numbers of all rows of the runs in which some lie, which rise.

    `meets` is as `_by_high_bits` gives it.
    """
    edges = np.concatenate(([-1], np.flatnonzero(~meets), [len(meets)]))
    behind = np.searchsorted(edges, some)  # They rise, as these do.
    behind = behind[np.append(True, behind[1:] != behind[:-1])]
    begins = edges[behind - 1] + 1
    counts = edges[behind] + 1 - begins
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Longs = np.repeat(begins, counts) + inside
    return found
