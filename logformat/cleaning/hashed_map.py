"""The last place of each key in a log, by a hash table that numba compiled the loops of.

The rule: it is what `OffsetMap` is, but for how many keys the memory given holds. When three
quarters of the table are taken the next one has twice as many slots, up to two thirds of that
memory, for both are held while one is filled from the other; else the upper half of the keys goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klog.logformat.cleaning.key_hash import Hashes
from klog.logformat.cleaning.offset_map import KeyRange, check_memory
from klog.logformat.index import Longs, Mask

_FIRST_SLOTS = 1 << 17
"""The first table has no more."""


class HashedMap:
    """Places by key."""

    def __init__(self, tables: Any, most_bytes: int, keys: KeyRange | None = None) -> None:
        """Begin empty. Raises `ValueError` for less memory than a few thousand keys take."""
        check_memory(most_bytes)
        self._tables = tables
        self._keys = keys or KeyRange()
        # Besides a slot, whether it stays where keys are given up.
        most_slots = min(most_bytes // (tables.SLOT_BYTES + 2), tables.MOST_SLOTS)
        # From the last to the first.
        self._sizes = [2 * most_slots // 3]
        while self._sizes[-1] > _FIRST_SLOTS:
            self._sizes.append(self._sizes[-1] // 2)
        self._table = tables.empty(self._sizes.pop())
        self._count = 0

    @property
    def keys(self) -> KeyRange:
        """Give the keys that it knows, of those that it was asked to know."""
        return self._keys

    def __len__(self) -> int:
        """Give the number of keys."""
        return self._count

    def put(self, first: Hashes, second: Hashes, places: Longs) -> None:
        """Say the places of records, which rise; those of keys out of range are left out."""
        while len(first):
            used = self._count, 3 * len(self._table) // 4
            bounds = np.uint64(self._keys.begin), np.uint64(self._keys.end - 1)
            done, self._count = self._tables.put(self._table, used, bounds, first, second, places)
            first, second, places = first[done:], second[done:], places[done:]
            if len(first):
                self._make_room()

    def claim(self, first: Hashes, second: Hashes, wanted: Mask) -> bool:
        """Put the keys that are wanted, the last one first, and leave wanted only new ones.

        Each has place 0. False if memory is full before all are put: then the map is of no use.
        """
        left = len(first)
        while left:
            used = self._count, 3 * len(self._table) // 4
            rows = slice(0, left)
            left, self._count = self._tables.claim(
                self._table, used, first[rows], second[rows], wanted[rows]
            )
            if left:
                if not self._sizes:
                    return False
                self._make_room()
        return True

    def find(self, first: Hashes, second: Hashes) -> Longs:
        """Give the last place of each key, `ABSENT` where there is none."""
        found = np.empty(len(first), np.int64)
        self._tables.find(self._table, first, second, found)
        return found

    def places(self) -> Longs:
        """Give the last places of all keys, rising."""
        places = self._table[:, 2]
        found: Longs = places[places != 0].view(np.int64)
        found -= 1
        found.sort()
        return found

    def _make_room(self) -> None:
        """Take a larger table, or give up keys."""
        if self._sizes:
            table = self._tables.empty(self._sizes.pop())
            self._tables.move(self._table, table)
            self._table = table
            return
        self._keys, _ = self._keys.halves()
        table = self._table
        stays = table[:, 0] < np.uint64(self._keys.end)
        stays &= table[:, 2] != 0
        kept = table[stays]
        table.fill(0)
        self._tables.move(kept, table)
        self._count = len(kept)
