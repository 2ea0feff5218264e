"""The last record of each key, in a hash table whose loops are kernels.

The rule: it maps the same keys as `OffsetMap`, but another number of them fits into the same
memory. When three quarters of the table are used, the next table has twice as many slots, up to two
thirds of the memory, as both are held while one is filled from the other. When the last table is
full, the map drops the upper half of the keys.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.cleaning.key_hash import Hashes
from klog.logformat.cleaning.offset_map import KeyRange, check_memory
from klog.logformat.compiled.kernel_types import HashTableKernels

_MAX_FIRST_SLOTS = 1 << 17
"""The slots of the first table, at most."""


class CompiledOffsetMap:
    """The ordinals of the last records of keys."""

    def __init__(
        self, tables: HashTableKernels, max_bytes: int, keys: KeyRange | None = None
    ) -> None:
        """Start without keys.

        Args:
            tables: Kernels of hash tables.
            max_bytes: What the map may take.
            keys: The range of keys that it takes, all if None.

        Raises:
            ValueError: As `check_memory`.
        """
        check_memory(max_bytes)
        self._tables = tables
        self._keys = keys or KeyRange()
        # Two more bytes a slot: which ones stay when keys are dropped.
        max_slots = min(max_bytes // (tables.SLOT_BYTES + 2), tables.MAX_SLOTS)
        # From the last table to the first.
        self._sizes = [2 * max_slots // 3]
        while self._sizes[-1] > _MAX_FIRST_SLOTS:
            self._sizes.append(self._sizes[-1] // 2)
        self._table = tables.empty_table(self._sizes.pop())
        self._count = 0

    @property
    def keys(self) -> KeyRange:
        """Return the range of keys that the map has, after those dropped for memory."""
        return self._keys

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._count

    def put(self, first: Hashes, second: Hashes, ordinals: Longs) -> None:
        """Put the keys of records; those out of range are left out.

        Args:
            first: The first halves of their hashes.
            second: The second halves.
            ordinals: Of the records, rising.
        """
        while len(first):
            used = self._count, 3 * len(self._table) // 4
            bounds = np.uint64(self._keys.start), np.uint64(self._keys.end - 1)
            done, self._count = self._tables.put(self._table, used, bounds, first, second, ordinals)
            first, second, ordinals = first[done:], second[done:], ordinals[done:]
            if len(first):
                self._make_room()

    def put_if_absent(self, first: Hashes, second: Hashes, rows: Mask) -> bool:
        """Put the keys of records, the last one first, with ordinal 0.

        Args:
            first: The first halves of their hashes.
            second: The second halves.
            rows: Which of them to put. Afterwards, those whose keys were absent.

        Returns:
            Whether all fit. If not, the map has only some of the keys.
        """
        count = len(first)
        while count:
            used = self._count, 3 * len(self._table) // 4
            remaining = slice(0, count)
            count, self._count = self._tables.put_if_absent(
                self._table, used, first[remaining], second[remaining], rows[remaining]
            )
            if count:
                if not self._sizes:
                    return False
                self._make_room()
        return True

    def find(self, first: Hashes, second: Hashes) -> Longs:
        """Return the ordinal of each key's last record, `ABSENT` without one.

        Args:
            first: The first halves of the keys' hashes.
            second: The second halves.
        """
        ordinals = np.empty(len(first), np.int64)
        self._tables.find(self._table, first, second, ordinals)
        return ordinals

    def ordinals(self) -> Longs:
        """Return the ordinals of all keys' last records, rising."""
        column = self._table[:, 2]
        ordinals: Longs = column[column != 0].view(np.int64)
        ordinals -= 1
        ordinals.sort()
        return ordinals

    def _make_room(self) -> None:
        """Take a larger table, or drop keys."""
        if self._sizes:
            table = self._tables.empty_table(self._sizes.pop())
            self._tables.move(self._table, table)
            self._table = table
            return
        self._keys, _ = self._keys.split()
        table = self._table
        stays = table[:, 0] < np.uint64(self._keys.end)
        stays &= table[:, 2] != 0
        slots = table[stays]
        table.fill(0)
        self._tables.move(slots, table)
        self._count = len(slots)
