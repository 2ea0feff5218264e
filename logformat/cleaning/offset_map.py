"""The last place of each key in a log, in memory of a given size: Kafka's `SkimpyOffsetMap`.

The rule: a key is the 128 bits of its hash. Records are put in the order of the log, so of one key
the last that is put stays. When memory is full the map gives up the upper half of the keys, by the
first 64 bits, and says up to where it still knows them: whoever wants the others makes another map
for them. Slots are tried one behind the other, at most two thirds of them are full.

Many records are put at a time, in the order of their hashes, which is that of their slots: then
what is looked at next lies near what was looked at last, and a key that comes twice is seen at
once. Hash and number of a record are sorted as one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klog.logformat.cleaning.key_hash import Hashes
from klog.logformat.index import Longs

ALL_KEYS = (0, 1 << 64)
"""The range of the first halves of hashes: from the first number to before the second."""
ABSENT = -1
SLOT_BYTES = 24
LEAST_SLOTS = 1 << 12
LEAST_BYTES = 2 * LEAST_SLOTS * SLOT_BYTES
_SHARE = 8
"""As many records at a time as this share of the slots: what they need is known to fit."""
_NUMBER_BITS = 18
_MOST_AT_ONCE = 1 << _NUMBER_BITS
_NUMBER = np.uint64(_MOST_AT_ONCE - 1)
_SPREAD = np.uint64(0x9FB21C651E98DF25)


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
        self._most_bytes = most_bytes
        self._waiting: list[tuple[Hashes, Hashes, Longs]] = []
        self._waiting_count = 0
        self._make(LEAST_SLOTS)

    @property
    def keys(self) -> KeyRange:
        """Give the keys that it knows, of those that it was asked to know."""
        self._settle()
        return self._keys

    def __len__(self) -> int:
        """Give the number of keys."""
        self._settle()
        return self._used

    def put(self, first: Hashes, second: Hashes, places: Longs) -> None:
        """Say the places of records, which rise; those of keys out of range are left out."""
        self._waiting.append((first, second, places))
        self._waiting_count += len(first)
        if self._waiting_count >= self._at_once():
            self._settle()

    def _settle(self) -> None:
        """Place what waits to be placed with more."""
        if not self._waiting:
            return
        first, second, places = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting, self._waiting_count = [], 0
        begin = 0
        while begin < len(first):
            some = slice(begin, begin + self._at_once())
            self._make_room(len(first[some]))
            inside = self._keys.holds(first[some])
            given = first[some], second[some], places[some]
            self._place(*(given if inside is None else (one[inside] for one in given)))
            begin = some.stop

    def find(self, first: Hashes, second: Hashes) -> Longs:
        """Give the last place of each key, `ABSENT` where there is none."""
        self._settle()
        found = np.full(len(first), ABSENT, np.int64)
        for begin in range(0, len(first), _MOST_AT_ONCE):
            some = slice(begin, begin + _MOST_AT_ONCE)
            self._find(first[some], second[some], found[some])
        return found

    def places(self) -> Longs:
        """Give the last places of all keys, rising."""
        self._settle()
        return np.sort(self._places[self._first != 0])

    def _make(self, slots: int) -> None:
        self._first, self._second = np.zeros((2, slots), np.uint64)
        self._places = np.empty(slots, np.int64)
        self._shift = np.uint64(64 - slots.bit_length() + 1)
        self._used = 0

    def _at_once(self) -> int:
        return min(len(self._first) // _SHARE, _MOST_AT_ONCE)

    def _in_order(self, first: Hashes) -> tuple[Longs, Longs]:
        """Give the numbers of keys in the order of their slots, and these.

        A slot is said by other bits than those that say which range a key is of.
        """
        spread = first * _SPREAD
        spread &= ~_NUMBER
        spread |= np.arange(len(first), dtype=np.uint64)
        spread.sort()
        numbers = (spread & _NUMBER).view(np.int64)
        spread >>= self._shift
        return numbers, spread.view(np.int64)

    def _next(self, slot: Longs) -> Longs:
        return (slot + 1) & (len(self._first) - 1)

    def _make_room(self, count: int) -> None:
        """Grow, or give up keys, until so many more fit."""
        while 3 * (self._used + count) > 2 * len(self._first):
            if not self._grow():
                self._keys, _ = self._keys.halves()
                self._refill(len(self._first))

    def _grow(self) -> bool:
        """Double the slots, if there is room for them, and as much for what is put there."""
        slots = 2 * len(self._first)
        if 2 * slots * SLOT_BYTES > self._most_bytes:
            return False
        self._refill(slots)
        return True

    def _refill(self, slots: int) -> None:
        """Put what is kept of the keys into a table of so many slots."""
        kept = self._first != 0
        inside = self._keys.holds(self._first)
        if inside is not None:
            kept &= inside
        first, second, places = self._first[kept], self._second[kept], self._places[kept]
        del kept, inside
        self._make(1)  # The old table has to go before the new one comes.
        self._make(slots)
        for begin in range(0, len(first), self._at_once()):
            some = slice(begin, begin + self._at_once())
            self._place(first[some], second[some], places[some])

    def _place(self, first: Hashes, second: Hashes, places: Longs) -> None:
        """Find or take the slot of each key; of those of one key the last says the place."""
        if not len(first):
            return
        numbers, slot = self._in_order(first)
        first, second, places = first[numbers], second[numbers], places[numbers]
        # One that its own key follows at once says nothing.
        last = np.append((first[1:] != first[:-1]) | (second[1:] != second[:-1]), True)
        first, second, places, slot = first[last], second[last], places[last], slot[last]
        while len(slot):
            seen = self._first[slot]
            free = np.flatnonzero(seen == 0)
            if len(free):
                # Where several want a slot the last one gets it, whole.
                taken = slot[free]
                self._first[taken], self._second[taken] = first[free], second[free]
                self._places[taken] = places[free]
                self._used += int((self._places[taken] == places[free]).sum())
                seen[free] = self._first[taken]
            same = seen == first
            same &= self._second[slot] == second
            self._places[slot[same]] = places[same]
            other = np.flatnonzero(~same)
            if not len(other):
                return
            first, second, places = first[other], second[other], places[other]
            slot = self._next(slot[other])

    def _find(self, first: Hashes, second: Hashes, found: Longs) -> None:
        """Fill in the last place of each key that is there."""
        numbers, slot = self._in_order(first)
        while len(numbers):
            seen = self._first[slot]
            same = seen == first[numbers]
            same &= self._second[slot] == second[numbers]
            found[numbers[same]] = self._places[slot[same]]
            other = np.flatnonzero(~same & (seen != 0))
            numbers, slot = numbers[other], self._next(slot[other])
