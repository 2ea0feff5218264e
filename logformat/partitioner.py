"""The partition of a record, as Kafka's default partitioner chooses it (docs/format.md, 15).

The rule: murmur2 of the key's bytes, its sign bit cleared, modulo all partitions, available or not.
An empty key is hashed, a null key is not. murmur2 is Kafka's (`Utils.murmur2`), 32 bits, seeded
with 0x9747b28c xor the length, over little-endian words and a tail of up to 3 bytes:

    each word   k = word * M;  k ^= k >>> 24;  h = h * M ^ k * M
    the tail    h = (h ^ tail) * M             if there is one
    at last     h ^= h >>> 13;  h *= M;  h ^= h >>> 15

Records without a key stick to one partition until a batch is full, and then go to another one.
Groups and transactional ids find the partition of their coordinator by Java's hash of a string.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Ints, Longs, Mask, UnsignedInts
from klog.logformat.indexes.index_building import rows_with_entries
from klog.logformat.key_words import KeyWords, key_words

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_MASK = 0xFFFFFFFF


def key_partitions(keys: pa.Array, partitions: int) -> pa.Array:
    """Return the partition of each key, as int32; null if the key is null.

    Args:
        keys: Binary or string, also large ones and views.
        partitions: How many partitions the topic has.

    Raises:
        ValueError: There is no partition.
    """
    _check_partitions(partitions)
    chosen = to_positive(_hashes(keys)) % np.int32(partitions)
    return pa.array(chosen, pa.int32(), mask=_nulls(keys))


def murmur2(keys: pa.Array) -> pa.Array:
    """Return the hash of each key, as int32; null if the key is null.

    Args:
        keys: Binary or string, also large ones and views.
    """
    return pa.array(_hashes(keys), pa.int32(), mask=_nulls(keys))


def to_positive(hashes: Ints) -> Ints:
    """Return hashes with the sign bit cleared, as Kafka's `Utils.toPositive`: not `abs`.

    Args:
        hashes: Hashes of any sign.
    """
    positive: Ints = hashes & np.int32(0x7FFFFFFF)
    return positive


def sticky_runs(size_bytes: Longs, batch_bytes: int) -> Longs:
    """Return the number of the run that each record without a key belongs to.

    The records of a run go to one partition. A run ends with the record at which it reaches
    `batch.size`, because a producer then looks for another partition.

    Args:
        size_bytes: The size of each record, at least 1.
        batch_bytes: The producer's `batch.size`.

    Raises:
        ValueError: A batch has less than one byte.
    """
    if batch_bytes < 1:
        raise ValueError(f"batch.size: must be at least 1, got {batch_bytes}")
    begins = np.zeros(len(size_bytes), np.int64)
    begins[rows_with_entries(np.cumsum(size_bytes) - size_bytes, batch_bytes - 1)] = 1
    return np.cumsum(begins)


def coordinator_partition(name: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` or `__transaction_state` that stores a name.

    Args:
        name: A group or a transactional id.
        partitions: How many partitions the internal topic has.

    Raises:
        ValueError: There is no partition.
    """
    _check_partitions(partitions)
    name_hash = java_hash(name)
    return 0 if name_hash == -(1 << 31) else abs(name_hash) % partitions


def java_hash(text: str) -> int:
    """Return the hash of a string by Java's `String.hashCode`: its UTF-16 code units, 32 bits.

    Args:
        text: The string.
    """
    text_hash = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        text_hash = text_hash * 31 + unit & _MASK
    return text_hash - (1 << 32) if text_hash >> 31 else text_hash


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        raise ValueError(f"partitions: must be at least 1, got {partitions}")


def _nulls(keys: pa.Array) -> Mask | None:
    if not keys.null_count:
        return None
    nulls: Mask = keys.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _hashes(keys: pa.Array) -> Ints:
    """Return the hash of each key; the hash of a null key has no meaning."""
    blocks = [_hash_block(words) for words in key_words(keys.cast(pa.large_binary()), np.uint32)]
    return np.concatenate(blocks or [np.zeros(len(keys), np.uint32)]).view(np.int32)


def _hash_block(words: KeyWords[np.uint32]) -> UnsignedInts:
    hashes: UnsignedInts = _SEED ^ words.lengths.astype(np.uint32)
    for column in words.columns():
        hashes[: len(column)] *= _M
        hashes[: len(column)] ^= _mix(column)
    for key, remaining in words.remaining():
        hashes[key] = _hash_words(int(hashes[key]), remaining)
    has_tail = words.lengths & 3 > 0
    if has_tail.any():
        np.multiply(hashes ^ words.tails(), _M, out=hashes, where=has_tail)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return words.in_input_order(hashes)


def _mix(words: UnsignedInts) -> UnsignedInts:
    """Mix words in place, before they go into a hash."""
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    return words


def _hash_words(key_hash: int, words: UnsignedInts) -> int:
    """Return the hash of one key after more of its words."""
    multiplier = int(_M)
    for word in _mix(words.copy()).tolist():
        key_hash = key_hash * multiplier & _MASK ^ word
    return key_hash
