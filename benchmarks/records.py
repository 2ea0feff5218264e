"""The records that every benchmark uses: 16-byte hex keys and text-like values.

The rule: equal arguments give equal bytes, for ever, so that figures can be compared across years;
a test holds the digest. Values are words by Zipf's law and some numbers, without regard to where a
record ends. At 100 bytes and in batches of 16 KiB, lz4 makes them 1.5 times smaller and zstd 2.2
times. Keys are distinct unless `unique_keys` says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]

KEY_BYTES = 16
CHUNK_RECORDS = 500_000
WORDS, NUMBERS = 3000, 1000
SHORTEST_MEAN_BYTES = 5
"""A word and its space are longer than this on average, so a chunk never runs out of text."""

_LETTERS = np.frombuffer(b"etaoinshrdlucmfwygpbvkxqjz", np.uint8)
_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


def records(
    count: int, value_bytes: int, seed: int = 1, unique_keys: int | None = None
) -> Iterator[Bytes]:
    """Make `count` records in chunks; a row is a key and then its value, nothing between."""
    rng = np.random.default_rng(seed)
    vocabulary = _vocabulary(rng)
    size = WORDS + NUMBERS
    weights = 1 / np.arange(1, size + 1) ** 0.95
    cumulated = np.cumsum(weights / weights.sum())
    by_rank = rng.permutation(size)
    for done in range(0, count, CHUNK_RECORDS):
        rows = min(CHUNK_RECORDS, count - done)
        text_bytes = rows * value_bytes
        drawn = rng.random(text_bytes // SHORTEST_MEAN_BYTES)
        ranks = np.minimum(np.searchsorted(cumulated, drawn), size - 1)
        text = _joined(vocabulary, by_rank[ranks])
        if len(text) < text_bytes:
            raise ValueError(f"{len(text)} bytes of text where {text_bytes} are needed")
        if unique_keys is None:
            ids = np.arange(done, done + rows)
        else:
            ids = rng.integers(0, unique_keys, rows)
        chunk = np.empty((rows, KEY_BYTES + value_bytes), np.uint8)
        chunk[:, :KEY_BYTES] = _keys(ids)
        chunk[:, KEY_BYTES:] = text[:text_bytes].reshape(rows, value_bytes)
        yield chunk


def as_table(rows: Bytes) -> pa.Table:
    """Make a table of keys and values, binary."""
    columns = [
        pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(part.shape[1]), len(part), [None, pa.py_buffer(part.tobytes())]
        ).cast(pa.binary())
        for part in (rows[:, :KEY_BYTES], rows[:, KEY_BYTES:])
    ]
    return pa.table(columns, ["key", "value"])


def _vocabulary(rng: np.random.Generator) -> pa.BinaryArray:
    """Draw words of three to eight letters, then numbers below a million."""
    weights = 1 / np.arange(1, 27) ** 0.6
    weights /= weights.sum()
    words = []
    for _ in range(WORDS):
        length = rng.integers(3, 9)
        words.append(_LETTERS[rng.choice(26, size=length, p=weights)].tobytes() + b" ")
    words += [b"%d " % number for number in rng.integers(0, 10**6, NUMBERS)]
    return pa.array(words, pa.binary())


def _joined(vocabulary: pa.BinaryArray, chosen: npt.NDArray[np.int64]) -> Bytes:
    """Join the chosen words."""
    taken = vocabulary.take(pa.array(chosen))
    data = taken.buffers()[2]
    assert data is not None
    return np.frombuffer(data, np.uint8)


def _keys(ids: npt.NDArray[np.int64]) -> Bytes:
    """Spread ids over 64 bits and write each as 16 hex digits."""
    spread = ids.astype(np.uint64) * _GOLDEN_RATIO
    shifts = np.arange(60, -1, -4).astype(np.uint64)
    digits = (spread[:, None] >> shifts[None, :]) & np.uint64(15)
    keys: Bytes = _HEX_DIGITS[digits.astype(np.intp)]
    return keys
