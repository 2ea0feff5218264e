"""Modules of kernels as types, for functions that take kernels as an argument.

The rule: a module is an instance of the protocol that has its name, and documents its functions.
This module does not import numba.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from klog.logformat.array_types import Bytes, Longs, Mask, UnsignedLongs


class RecordKernels(Protocol):
    """Module `record_kernels`: it reads and filters records of format v2."""

    HAS_KEY: np.uint8
    IS_TOMBSTONE: np.uint8
    MAX_GROWTH_BYTES: int

    def decode_keys(
        self,
        buffer: Bytes,
        sections: tuple[Longs, Longs],
        batches: tuple[Longs, Longs, Longs],
        seed: tuple[np.uint64, np.uint64],
        offsets: Longs,
        hashes: tuple[UnsignedLongs, UnsignedLongs],
        flags: Bytes,
        /,
    ) -> int:
        """Read offset, hash of the key and flags of each record, and return how many there are."""

    def filter_records(
        self,
        buffer: Bytes,
        sections: tuple[Longs, Longs],
        batches: tuple[Longs, Longs, Longs, Longs],
        retained: Mask,
        out: Bytes,
        ends: Longs,
        headers: tuple[Longs, Longs, Longs],
        /,
    ) -> bool:
        """Write the retained records of all batches."""


class HashTableKernels(Protocol):
    """Module `hash_table_kernels`: a hash table of keys and their positions."""

    SLOT_BYTES: int
    MAX_SLOTS: int

    def empty_table(self, slots: int, /) -> UnsignedLongs:
        """Return a table without keys."""

    def put(
        self,
        table: UnsignedLongs,
        used: tuple[int, int],
        bounds: tuple[np.uint64, np.uint64],
        first: UnsignedLongs,
        second: UnsignedLongs,
        positions: Longs,
        /,
    ) -> tuple[int, int]:
        """Put the positions of keys."""

    def put_if_absent(
        self,
        table: UnsignedLongs,
        used: tuple[int, int],
        first: UnsignedLongs,
        second: UnsignedLongs,
        candidates: Mask,
        /,
    ) -> tuple[int, int]:
        """Put the keys of candidate rows that the table does not have."""

    def move(self, slots: UnsignedLongs, table: UnsignedLongs, /) -> None:
        """Put slots of one table into another."""

    def find(
        self,
        table: UnsignedLongs,
        first: UnsignedLongs,
        second: UnsignedLongs,
        positions: Longs,
        /,
    ) -> None:
        """Fill in the position of each key."""


class CleaningKernels(NamedTuple):
    """The kernels of a compaction."""

    records: RecordKernels
    tables: HashTableKernels
