"""Which partition a key goes to, as Kafka's default partitioner says (docs/format.md, 15).

The rule: murmur2 of the key's bytes, its sign bit cleared, modulo all partitions, available or not.
An empty key is hashed, a null one is not. murmur2 here is Kafka's (`Utils.murmur2`), 32 bits,
seeded with 0x9747b28c xor the length, over little-endian words and a tail of up to 3 bytes:

    each word   k = word * M;  k ^= k >>> 24;  h = h * M ^ k * M
    the tail    h = (h ^ tail) * M             only where there is one
    at last     h ^= h >>> 13;  h *= M;  h ^= h >>> 15

Records without a key stick to one partition until a batch is full, and then go to another.
Groups and transactional ids find their coordinator's partition by Java's hash of a string instead.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.logformat.index import Longs
from klog.logformat.indexing import entry_rows
from klog.logformat.key_words import KeyWords, key_words

Words = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int32]

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_MASK = 0xFFFFFFFF


def key_partitions(keys: pa.Array, partitions: int) -> pa.Array:
    """Give the partition of each key, as int32; null where the key is null.

    `keys` are binary or string, large ones and views too. `ValueError` below one partition.
    """
    _check_partitions(partitions)
    placed = to_positive(_hashes(keys)) % np.int32(partitions)
    return pa.array(placed, pa.int32(), mask=_nulls(keys))


def murmur2(keys: pa.Array) -> pa.Array:
    """Hash each key, as int32; null where the key is null."""
    return pa.array(_hashes(keys), pa.int32(), mask=_nulls(keys))


def to_positive(hashes: Ints) -> Ints:
    """Clear the sign bit, as Kafka's `Utils.toPositive` does: not the absolute value."""
    positive: Ints = hashes & np.int32(0x7FFFFFFF)
    return positive


def sticky_runs(size_bytes: Longs, batch_bytes: int) -> Longs:
    """Give the run of each record without a key: a run goes to one partition, whichever it is.

    A run ends with the record at which it reaches `batch.size`, which is when a producer looks for
    another partition. `size_bytes` are those of each record, at least 1. `ValueError` for a batch
    of less than a byte.
    """
    if batch_bytes < 1:
        raise ValueError(f"batch.size {batch_bytes} lets no record stick to a partition")
    begins = np.zeros(len(size_bytes), np.int64)
    begins[entry_rows(np.cumsum(size_bytes) - size_bytes, batch_bytes - 1)] = 1
    return np.cumsum(begins)


def coordinator_partition(name: str, partitions: int) -> int:
    """Give the partition of `__consumer_offsets` or `__transaction_state` that keeps a name.

    `name` is a group or a transactional id. `ValueError` below one partition.
    """
    _check_partitions(partitions)
    hashed = java_hash(name)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions


def java_hash(text: str) -> int:
    """Hash a string as Java's `String.hashCode` does: over its UTF-16 code units, 32 bits."""
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        hashed = hashed * 31 + unit & _MASK
    return hashed - (1 << 32) if hashed >> 31 else hashed


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        raise ValueError(f"a topic of {partitions} partitions takes no records")


def _nulls(keys: pa.Array) -> npt.NDArray[np.bool_] | None:
    if not keys.null_count:
        return None
    nulls: npt.NDArray[np.bool_] = keys.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _hashes(keys: pa.Array) -> Ints:
    """Hash all keys; what is given for a null one means nothing."""
    blocks = [_hash_block(words) for words in key_words(keys.cast(pa.large_binary()), np.uint32)]
    return np.concatenate(blocks or [np.zeros(len(keys), np.uint32)]).view(np.int32)


def _hash_block(words: KeyWords[np.uint32]) -> Words:
    hashed: Words = _SEED ^ words.lengths.astype(np.uint32)
    for some in words.whole():
        hashed[: len(some)] *= _M
        hashed[: len(some)] ^= _mixed(some)
    for key, rest in words.rest():
        hashed[key] = _hash_on(int(hashed[key]), rest)
    has_tail = words.lengths & 3 > 0
    if has_tail.any():
        np.multiply(hashed ^ words.last(), _M, out=hashed, where=has_tail)
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    return words.as_given(hashed)


def _mixed(words: Words) -> Words:
    """Mix words, in place, before they go into a hash."""
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    return words


def _hash_on(hashed: int, words: Words) -> int:
    """Go on with the words of one key."""
    multiplier = int(_M)
    for word in _mixed(words.copy()).tolist():
        hashed = hashed * multiplier & _MASK ^ word
    return hashed
