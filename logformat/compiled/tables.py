"""A hash table of keys and their places, by loops that numba compiles.

The rule: a slot is three words, both halves of a key's hash and its place plus one; 0 is an empty
slot. A key is looked for from the slot that its first half, multiplied, says, and on to the next
empty one, so one slot at least has to stay empty. Both halves are compared: what is found is the
key. A table knows nothing of ranges of keys: those that are out of one are passed over.

All of it lies in one file: numba takes what it kept for as good as new until this file changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klog.logformat.compiled.compiling import compiled, part
from klog.logformat.index import Mask
from klog.logformat.varint import Longs

Words = npt.NDArray[np.uint64]
Table = npt.NDArray[np.uint64]
"""Slots, by three words."""

SLOT_BYTES = 24
MOST_SLOTS = (1 << 32) - 1

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, by which high and low bits of a hash say where its slot is."""
_HALF, _EMPTY, _ONE = np.uint64(32), np.uint64(0), np.uint64(1)
_FIRST = np.uint64(0)


def empty(slots: int) -> Table:
    """Make a table without keys, of at most `MOST_SLOTS`."""
    return np.zeros((slots, 3), np.uint64)


def compile_all() -> None:
    """Compile each loop, or load what was kept of it; raises whatever numba raises."""
    table, none, places = empty(2), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    bounds = np.uint64(0), np.uint64(0)
    put(table, (0, 1), bounds, none, none, places)
    claim(table, (0, 1), none, none, np.zeros(0, np.bool_))
    move(table, table)
    find(table, none, none, places)


@compiled
def put(
    table: Table,
    used: tuple[int, int],
    bounds: tuple[np.uint64, np.uint64],
    first: Words,
    second: Words,
    places: Longs,
) -> tuple[int, int]:
    """Put the places of keys whose first half is from the least to the greatest of `bounds`.

    `used` are the slots that are taken, and how many may be. Gives how many rows were looked at, up
    to the first for which there is no slot, and how many slots are taken now.
    """
    taken, most = used
    least, greatest = bounds
    for row in range(len(first)):
        key, other = first[row], second[row]
        if key < least or key > greatest:
            continue
        at = _slot(table, key, other)
        if table[at, 2] == _EMPTY:
            if taken == most:
                return row, taken
            table[at, 0], table[at, 1] = key, other
            taken += 1
        table[at, 2] = np.uint64(places[row]) + _ONE
    return len(first), taken


@compiled
def claim(
    table: Table, used: tuple[int, int], first: Words, second: Words, wanted: Mask
) -> tuple[int, int]:
    """Put the keys that are wanted, the last row first; those that are there are wanted no more.

    `used` is as of `put`. Gives how many rows are left, down to the last for which there is no
    slot, and how many slots are taken now.
    """
    taken, most = used
    for left in range(len(first), 0, -1):
        row = left - 1
        if not wanted[row]:
            continue
        key, other = first[row], second[row]
        at = _slot(table, key, other)
        if table[at, 2] != _EMPTY:
            wanted[row] = False
            continue
        if taken == most:
            return left, taken
        table[at, 0], table[at, 1], table[at, 2] = key, other, _ONE
        taken += 1
    return 0, taken


@compiled
def move(rows: Table, table: Table) -> None:
    """Put the slots of one table that are not empty, or some of them, into another."""
    for row in range(len(rows)):
        if rows[row, 2] != _EMPTY:
            at = _slot(table, rows[row, 0], rows[row, 1])
            for word in range(3):
                table[at, word] = rows[row, word]


@compiled
def find(table: Table, first: Words, second: Words, found: Longs) -> None:
    """Fill in the place of each key, -1 where there is none."""
    for row in range(len(first)):
        at = _slot(table, first[row], second[row])
        found[row] = np.int64(table[at, 2]) - 1


@part
def _slot(table: Table, key: np.uint64, other: np.uint64) -> np.uint64:
    """Give the slot of a key, or the empty one where it would be."""
    slots = np.uint64(len(table))
    at = ((key * _SPREAD) >> _HALF) * slots >> _HALF
    while table[at, 2] != _EMPTY and (table[at, 0] != key or table[at, 1] != other):
        at += _ONE
        if at == slots:
            at = _FIRST
    return at
