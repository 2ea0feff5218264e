"""Keys as columns of words, for hashes that take one word of all keys at a time.

The rule: a key is little-endian words, and a partial one at its end if its length is not a multiple
of the word's. Keys of equal length lie in rows of that length, so a word of each is a column of the
rows. Other keys are sorted by length, longest first, so those that still have a word are a prefix.
The words that only a few long keys have come key by key: a call of numpy costs more than the words
of a few keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.logformat.array_types import Bytes, Longs

Word = TypeVar("Word", np.uint32, np.uint64)

_MIN_KEYS = 32
"""As many keys are worth a call of numpy."""
_BLOCK_KEYS = 1 << 14
"""Keys taken at a time: their words and hashes stay in the processor's cache."""


class KeyWords(Generic[Word]):
    """The words of a block of keys, in an order of its own; `lengths` are in bytes."""

    def __init__(self, buffer: Bytes, starts: Longs, lengths: Longs, word: type[Word]) -> None:
        """Take keys that follow each other in a buffer.

        Args:
            buffer: The keys, and at least one word more.
            starts: The position of each key.
            lengths: The bytes of each key.
            word: The type of a word.
        """
        self._order: Longs | None = None
        self._has_equal_lengths = len(lengths) >= _MIN_KEYS and int(lengths.min()) == int(
            lengths.max()
        )
        if not self._has_equal_lengths:
            self._order = np.argsort(-lengths, kind="stable")
            starts, lengths = starts[self._order], lengths[self._order]
        self.lengths, self._starts, self._buffer = lengths, starts, buffer
        self._word = np.dtype(word).newbyteorder("<")
        self._word_bytes = self._word.itemsize
        self._counts = lengths // self._word_bytes
        self._steps = int(self._counts[_MIN_KEYS - 1]) if len(lengths) >= _MIN_KEYS else 0

    def columns(self) -> Iterator[npt.NDArray[Word]]:
        """Yield the next full word of each of the first keys, while many keys have one."""
        for step in range(self._steps):
            yield self._words_at(self._starts[: self._keys_with(step)] + self._word_bytes * step)

    def remaining(self) -> Iterator[tuple[int, npt.NDArray[Word]]]:
        """Yield the row of each key that has full words after `columns`, and these words."""
        for key in range(self._keys_with(self._steps)):
            start = int(self._starts[key]) + self._word_bytes * self._steps
            end = int(self._starts[key] + self._word_bytes * self._counts[key])
            yield key, self._buffer[start:end].view(self._word)

    def tails(self) -> npt.NDArray[Word]:
        """Return the bytes of each key after its full words, filled up with zeros."""
        masks = np.array([(1 << 8 * size) - 1 for size in range(self._word_bytes)], self._word)
        # One mask is enough for keys of equal length.
        rows = slice(1) if self._has_equal_lengths else slice(None)
        tail_bytes = self.lengths[rows] & (self._word_bytes - 1)
        words = self._words_at(self._starts + self._word_bytes * self._counts[rows])
        words &= masks[tail_bytes]
        return words

    def in_input_order(self, hashes: npt.NDArray[Word]) -> npt.NDArray[Word]:
        """Return the hash of each key in the order in which the keys were passed.

        Args:
            hashes: The hash of each key in the order of this block.
        """
        if self._order is None:
            return hashes
        ordered = np.empty_like(hashes)
        ordered[self._order] = hashes
        return ordered

    def _keys_with(self, step: int) -> int:
        """Count the keys that have a full word of this number."""
        return int(np.searchsorted(-self._counts, -step, "left"))

    def _words_at(self, starts: Longs) -> npt.NDArray[Word]:
        """Return a copy of the words at these positions."""
        if self._has_equal_lengths:
            stride = (int(self.lengths[0]),)
            rows = np.ndarray((len(starts),), self._word, self._buffer, int(starts[0]), stride)
            column: npt.NDArray[Word] = rows.copy()
            return column
        word_count = len(self._buffer) - self._word_bytes + 1
        all_words = np.ndarray((word_count,), self._word, self._buffer, 0, (1,))
        words: npt.NDArray[Word] = all_words[starts]
        return words


def key_words(keys: pa.LargeBinaryArray, word: type[Word]) -> Iterator[KeyWords[Word]]:
    """Yield the words of keys, block by block; the words of a null key have no meaning.

    Args:
        keys: The keys, in order.
        word: The type of a word.
    """
    _, offsets, values = keys.buffers()
    if not len(keys) or offsets is None:
        return
    bounds: Longs = np.frombuffer(offsets, np.int64, len(keys) + 1, 8 * keys.offset)
    start, end = int(bounds[0]), int(bounds[-1])
    # One word more, so that the last one can be read in full.
    buffer = np.zeros(end - start + np.dtype(word).itemsize, np.uint8)
    if values is not None:
        buffer[: end - start] = np.frombuffer(values, np.uint8, end - start, start)
    starts, lengths = bounds[:-1] - start, np.diff(bounds)
    for first in range(0, len(keys), _BLOCK_KEYS):
        block = slice(first, first + _BLOCK_KEYS)
        yield KeyWords(buffer, starts[block], lengths[block], word)
