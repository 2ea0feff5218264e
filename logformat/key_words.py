"""The words of many keys, side by side, for hashes that take a word of all keys at a time.

The rule: a key is little-endian words, and up to one that is not whole. Keys of one length lie in
rows of that length, and a word of each is a column of them; others are taken longest first, so that
those that still have a word are the first ones. What few long keys have beyond the others' words
comes key by key: calls of numpy cost more than the words of a few keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.logformat.index import Longs

Word = TypeVar("Word", np.uint32, np.uint64)

_LANES = 32
"""So many keys at least are worth a call of numpy."""
_BLOCK = 1 << 14
"""Keys taken at a time: their words and hashes stay in cache."""


class KeyWords(Generic[Word]):
    """The words of some keys, which stand in an order of their own; `lengths` in bytes."""

    def __init__(
        self, buffer: npt.NDArray[np.uint8], starts: Longs, lengths: Longs, word: type[Word]
    ) -> None:
        """Take keys that follow each other in `buffer`, which goes on for a word behind them."""
        self._order: Longs | None = None
        self._are_rows = len(lengths) >= _LANES and int(lengths.min()) == int(lengths.max())
        if not self._are_rows:
            self._order = np.argsort(-lengths, kind="stable")
            starts, lengths = starts[self._order], lengths[self._order]
        self.lengths, self._starts, self._buffer = lengths, starts, buffer
        self._word = np.dtype(word).newbyteorder("<")
        self._size = self._word.itemsize
        self._counts = lengths // self._size
        self._steps = int(self._counts[_LANES - 1]) if len(lengths) >= _LANES else 0

    def whole(self) -> Iterator[npt.NDArray[Word]]:
        """Give the next whole word of each of the first keys, as long as many have one."""
        for step in range(self._steps):
            yield self._at(self._starts[: self._active(step)] + self._size * step)

    def rest(self) -> Iterator[tuple[int, npt.NDArray[Word]]]:
        """Give the place of each key that has more whole words, and these words."""
        for key in range(self._active(self._steps)):
            begin = int(self._starts[key]) + self._size * self._steps
            end = int(self._starts[key] + self._size * self._counts[key])
            yield key, self._buffer[begin:end].view(self._word)

    def last(self) -> npt.NDArray[Word]:
        """Give what each key has behind its whole words, filled up with zeros."""
        kept = np.array([(1 << 8 * size) - 1 for size in range(self._size)], self._word)
        some = slice(1) if self._are_rows else slice(None)  # One mask does for keys of one length.
        sizes = self.lengths[some] & (self._size - 1)
        words = self._at(self._starts + self._size * self._counts[some])
        words &= kept[sizes]
        return words

    def as_given(self, hashes: npt.NDArray[Word]) -> npt.NDArray[Word]:
        """Put what was made of each key into the order in which the keys were given."""
        if self._order is None:
            return hashes
        given = np.empty_like(hashes)
        given[self._order] = hashes
        return given

    def _active(self, step: int) -> int:
        """Count the keys that have a whole word of this number."""
        return int(np.searchsorted(-self._counts, -step, "left"))

    def _at(self, starts: Longs) -> npt.NDArray[Word]:
        """Give the words that begin there, in memory of their own."""
        if self._are_rows:
            pitch = (int(self.lengths[0]),)
            rows = np.ndarray((len(starts),), self._word, self._buffer, int(starts[0]), pitch)
            column: npt.NDArray[Word] = rows.copy()
            return column
        anywhere = np.ndarray(
            (len(self._buffer) - self._size + 1,), self._word, self._buffer, 0, (1,)
        )
        found: npt.NDArray[Word] = anywhere[starts]
        return found


def key_words(keys: pa.LargeBinaryArray, word: type[Word]) -> Iterator[KeyWords[Word]]:
    """Give the words of keys, so many at a time that they stay in cache; a null's mean nothing."""
    _, offsets, values = keys.buffers()
    if not len(keys) or offsets is None:
        return
    bounds: Longs = np.frombuffer(offsets, np.int64, len(keys) + 1, 8 * keys.offset)
    begin, end = int(bounds[0]), int(bounds[-1])
    # A word more, so that any last one may be read whole.
    buffer = np.zeros(end - begin + np.dtype(word).itemsize, np.uint8)
    if values is not None:
        buffer[: end - begin] = np.frombuffer(values, np.uint8, end - begin, begin)
    starts, lengths = bounds[:-1] - begin, np.diff(bounds)
    for at in range(0, len(keys), _BLOCK):
        some = slice(at, at + _BLOCK)
        yield KeyWords(buffer, starts[some], lengths[some], word)
