"""Modules of kernels as types, for functions that take kernels as an argument.

The rule: a module is an instance of the protocol that has its name, and documents its functions.
This module does not import numba.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from klog.logformat.array_types import Bytes, Ints, Longs, Mask, UnsignedLongs

Rows: TypeAlias = tuple[Longs, Longs, int]
"""Rows to encode: timestamps, offsets, and the offset of row 0 if the array of offsets is empty."""
BinaryColumn: TypeAlias = tuple[Ints, Bytes, tuple[int, int], Bytes]
"""A column of bytes: bounds of its elements, validity bits, `(first, mask)`, and the bytes.

The validity of row i is bit `(i + first) & mask`: with a mask of 0 one bit stands for all rows.
"""
KeysAndValues: TypeAlias = tuple[BinaryColumn, BinaryColumn]


class EncodeKernels(Protocol):
    """Module `encode_kernels`: it encodes records of format v2 from Arrow's columns."""

    FULL: int
    REFUSED: int
    SIZE: int
    LAST_OFFSET: int
    STATE: int

    def count_fitting_rows(
        self,
        rows: Rows,
        fields: KeysAndValues,
        row: int,
        limits: tuple[int, int, bool],
        state: Longs,
        /,
    ) -> tuple[int, int]:
        """Return the first row from `row` on that a batch does not take, and the reason."""

    def encode_records(
        self,
        rows: Rows,
        fields: KeysAndValues,
        row_range: tuple[int, int],
        state: Longs,
        out: Bytes,
        position: int,
        /,
    ) -> None:
        """Write the records of rows that `count_fitting_rows` counted."""


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
