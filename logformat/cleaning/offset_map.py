"""The last place of each key in a log, in memory of a given size: Kafka's `SkimpyOffsetMap`.

The rule: a key is the 128 bits of its hash. Records are put in the order of the log, so of one key
the last that is put stays. When memory is full the map gives up the upper half of the keys, by the
first 64 bits, and says up to where it still knows them: whoever wants the others makes another map
for them.

Keys lie in the order of their hashes. What is put waits until there is as much of it as of keys, or
as memory has room for; then both are sorted into one, which takes fewer steps a record than finding
each one's slot in a hash table, and goes through memory in order. Hash and number of a row are
sorted as one number of 64 bits, for which numpy has the processor's widest instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

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


class OffsetMap:
    """Places by key."""

    def __init__(self, most_bytes: int, keys: KeyRange | None = None) -> None:
        """Begin empty. Raises `ValueError` for less memory than a few thousand keys take."""
        if most_bytes < LEAST_BYTES:
            raise ValueError(f"an offset map of {most_bytes} bytes: the least is {LEAST_BYTES}")
        self._keys = keys or KeyRange()
        self._most_rows = most_bytes // ROW_BYTES
        self._rows = _Rows.none()
        self._waiting = _Waiting()
        self._lookup: _Lookup | None = None

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
            some = slice(begin, begin + self._room())
            inside = self._keys.holds(first[some])
            cut = some if inside is None else begin + np.flatnonzero(inside)
            self._waiting.add(first[cut], second[cut], places[cut])
            begin = some.stop
            if not self._room():
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

    def _room(self) -> int:
        """Tell how many more rows may wait."""
        most = self._most_rows - len(self._rows)
        return min(most, max(_WAITING, len(self._rows))) - self._waiting.count

    def _settle(self) -> None:
        """Sort what waits into what is known; give up keys until there is room for more to wait."""
        if not self._waiting.count:
            return
        waiting = self._waiting.behind(self._rows)
        self._rows, self._waiting, self._lookup = _Rows.none(), _Waiting(), None
        self._rows = waiting.last()
        while 4 * len(self._rows) > 3 * self._most_rows:
            self._keys, _ = self._keys.halves()
            self._rows = self._rows.below(self._keys.end)


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
        bounds = np.arange((span >> int(self._shift)) + 1, dtype=np.uint64) << self._shift
        self._starts = np.searchsorted(rows.first, bounds + self._least)

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


_Number = TypeVar("_Number", np.uint64, np.int64)


class _Waiting:
    """Rows in the order in which they came, to be sorted."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[Hashes] = []
        self._second: list[Hashes] = []
        self._places: list[Longs] = []

    def add(self, first: Hashes, second: Hashes, places: Longs) -> None:
        """Take copies: what they are a part of would be held with them."""
        self.count += len(first)
        self._first.append(first.copy())
        self._second.append(second.copy())
        self._places.append(places.copy())

    def behind(self, rows: _Rows) -> _Waiting:
        """Give these behind some that were sorted before."""
        found = _Waiting()
        found.count = len(rows) + self.count
        found._first = [rows.first, *self._first]
        found._second = [rows.second, *self._second]
        found._places = [rows.places, *self._places]
        return found

    def last(self) -> _Rows:
        """Give the last row of each key, in the order of keys; none waits then.

        What is not needed any more goes at once: all of this is held in memory together.
        """
        first, second = _joined(self._first), _joined(self._second)
        places = _joined(self._places)
        numbers, meets = _by_high_bits(first)
        ordered, others = _taken(first, numbers), _taken(second, numbers)
        same = _same(ordered, others)
        if not np.array_equal(same, meets):
            # Of hashes few keys differ only in low bits: these are put in order by all bits.
            unsure = _in_runs(meets, meets & ~same)
            some = numbers[unsure]
            numbers[unsure] = some[np.lexsort((some, second[some], first[some]))]
            ordered[unsure], others[unsure] = first[numbers[unsure]], second[numbers[unsure]]
            same = _same(ordered, others)
        del first, second, meets
        last = np.flatnonzero(np.append(~same, True))
        ordered = ordered[last]
        others = others[last]
        numbers = numbers[last]
        return _Rows(ordered, others, places[numbers])


def _joined(parts: list[npt.NDArray[_Number]]) -> npt.NDArray[_Number]:
    """Put parts one behind the other, and let them go."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


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


def _in_runs(meets: Mask, marked: Mask) -> Longs:
    """Give the numbers of all rows of the runs in which one is marked."""
    runs = np.append(0, np.cumsum(~meets))
    return np.flatnonzero(np.isin(runs, runs[1:][marked]))
