"""Kernels for a hash table of keys and their positions.

The rule: a slot is three words: both halves of a key's hash, and its position plus one; 0 marks an
empty slot. A search starts at the slot that the first half, multiplied, selects, and goes on to the
next empty one, so at least one slot must stay empty. Both halves are compared: equal halves are the
same key. A table knows no ranges of keys: `put` skips keys that are out of range.

All code is in one file: numba keeps compiled code until this file changes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from klog.logformat.array_types import Longs, Mask, UnsignedLongs
from klog.logformat.compiled.kernel_functions import inlined, kernel

Table: TypeAlias = UnsignedLongs
"""Shape (slots, 3)."""

SLOT_BYTES = 24
MAX_SLOTS = (1 << 32) - 1

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number; multiplied by it, all bits of a hash decide its slot."""
_HALF, _EMPTY, _ONE = np.uint64(32), np.uint64(0), np.uint64(1)
_FIRST_SLOT = np.uint64(0)


def empty_table(slots: int) -> Table:
    """Return a table without keys.

    Args:
        slots: At most `MAX_SLOTS`.
    """
    return np.zeros((slots, 3), np.uint64)


def compile_all() -> None:
    """Compile each kernel, or load its compiled code; raises whatever numba raises."""
    table, hashes, positions = empty_table(2), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    bounds = np.uint64(0), np.uint64(0)
    put(table, (0, 1), bounds, hashes, hashes, positions)
    put_if_absent(table, (0, 1), hashes, hashes, np.zeros(0, np.bool_))
    move(table, table)
    find(table, hashes, hashes, positions)


@kernel
def put(
    table: Table,
    used: tuple[int, int],
    bounds: tuple[np.uint64, np.uint64],
    first: UnsignedLongs,
    second: UnsignedLongs,
    positions: Longs,
) -> tuple[int, int]:
    """Put the positions of keys whose first half is within bounds; a later row replaces an earlier.

    Args:
        table: The table.
        used: How many slots are taken, and how many may be.
        bounds: The lowest and the highest first half, both inclusive.
        first: The first halves of the keys' hashes.
        second: The second halves.
        positions: The positions of the keys.

    Returns:
        How many rows were processed, up to the first for which there is no slot, and how many slots
        are taken now.
    """
    taken, max_taken = used
    lowest, highest = bounds
    for row in range(len(first)):
        first_half, second_half = first[row], second[row]
        if first_half < lowest or first_half > highest:
            continue
        slot = _slot(table, first_half, second_half)
        if table[slot, 2] == _EMPTY:
            if taken == max_taken:
                return row, taken
            table[slot, 0], table[slot, 1] = first_half, second_half
            taken += 1
        table[slot, 2] = np.uint64(positions[row]) + _ONE
    return len(first), taken


@kernel
def put_if_absent(
    table: Table,
    used: tuple[int, int],
    first: UnsignedLongs,
    second: UnsignedLongs,
    candidates: Mask,
) -> tuple[int, int]:
    """Put the keys of candidate rows, from the last row to the first.

    A row whose key is in the table already is no longer a candidate.

    Args:
        table: The table.
        used: As of `put`.
        first: The first halves of the keys' hashes.
        second: The second halves.
        candidates: The rows to put; it is updated.

    Returns:
        How many rows remain, down to the last for which there is no slot, and how many slots are
        taken now.
    """
    taken, max_taken = used
    for remaining in range(len(first), 0, -1):
        row = remaining - 1
        if not candidates[row]:
            continue
        first_half, second_half = first[row], second[row]
        slot = _slot(table, first_half, second_half)
        if table[slot, 2] != _EMPTY:
            candidates[row] = False
            continue
        if taken == max_taken:
            return remaining, taken
        table[slot, 0], table[slot, 1], table[slot, 2] = first_half, second_half, _ONE
        taken += 1
    return 0, taken


@kernel
def move(slots: Table, table: Table) -> None:
    """Put slots of one table into another; empty ones are skipped.

    Args:
        slots: The slots to copy.
        table: The table that takes them; it has room for all.
    """
    for row in range(len(slots)):
        if slots[row, 2] != _EMPTY:
            slot = _slot(table, slots[row, 0], slots[row, 1])
            for word in range(3):
                table[slot, word] = slots[row, word]


@kernel
def find(table: Table, first: UnsignedLongs, second: UnsignedLongs, positions: Longs) -> None:
    """Fill in the position of each key, -1 if the table does not have it.

    Args:
        table: The table.
        first: The first halves of the keys' hashes.
        second: The second halves.
        positions: Written: a position for each key.
    """
    for row in range(len(first)):
        slot = _slot(table, first[row], second[row])
        positions[row] = np.int64(table[slot, 2]) - 1


@inlined
def _slot(table: Table, first_half: np.uint64, second_half: np.uint64) -> np.uint64:
    """Return the slot of a key, or the empty one where it would go."""
    slots = np.uint64(len(table))
    slot = ((first_half * _SPREAD) >> _HALF) * slots >> _HALF
    while table[slot, 2] != _EMPTY and (
        table[slot, 0] != first_half or table[slot, 1] != second_half
    ):
        slot += _ONE
        if slot == slots:
            slot = _FIRST_SLOT
    return slot


KERNELS = (put, put_if_absent, move, find)
"""All kernels of this module."""
