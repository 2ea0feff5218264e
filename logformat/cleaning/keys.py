"""The keys of records as a cleaning knows them: by their hashes.

The rule: data batches come in order and in parts, control batches not at all. What numba compiled
reads parts of format v2 that are as they should be; all else, and all where there is no numba, is
read by way of Arrow's columns, which names what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.cleaning.key_hash import Hashes, Seed, hash_keys
from klog.logformat.columnar import PART_BYTES, decode_parts
from klog.logformat.index import Longs, Mask
from klog.logformat.sections import Sections, record_sections

MOST_RECORDS = 1 << 20
"""A part of more is read by way of columns, which hold fewer at a time."""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """Some data records: offsets, the hashes of keys, which have one, which are tombstones."""

    offsets: Longs
    first: Hashes
    second: Hashes
    has_key: Mask
    tombstones: Mask


ReadKeys = Callable[[bytes, v2.Batches, Seed], Iterator[KeyRows]]


def read_keys(data: bytes, batches: v2.Batches, seed: Seed) -> Iterator[KeyRows]:
    """Decode the keys of data batches. Raises `CorruptRecordError` with the position in `data`."""
    for part in decode_parts(data, batches, ("key", "is_tombstone")):
        assert part.key is not None
        assert part.is_tombstone is not None
        first, second = hash_keys(part.key, seed)
        has_key: Mask = np.ones(len(first), np.bool_)
        if part.key.null_count:
            has_key = part.key.is_valid().to_numpy(zero_copy_only=False)
        yield KeyRows(part.offset, first, second, has_key, part.is_tombstone)


def read_keys_by(loops: Any) -> ReadKeys:
    """Give what reads keys as `read_keys` does, several times as fast, by compiled loops."""

    def read(data: bytes, batches: v2.Batches, seed: Seed) -> Iterator[KeyRows]:
        if batches.is_legacy.any():  # Of a wrapper only its records say where its offsets lie.
            yield from read_keys(data, batches, seed)
            return
        some = batches.where(batches.headers["count"] != 0)
        for part, sections in record_sections(data, some, PART_BYTES):
            rows = read_sections(loops, part, sections, seed) if len(part) else None
            if rows is not None:
                yield rows
            else:
                yield from read_keys(data, part, seed)

    return read


def read_sections(
    loops: Any, batches: v2.Batches, sections: Sections, seed: Seed
) -> KeyRows | None:
    """Read the keys of batches v2 by compiled loops; None where columns have to be made."""
    counts = batches.headers["count"].astype(np.int64)
    total = int(counts.sum())
    if total > MOST_RECORDS:
        return None
    first, second = np.empty((2, total), np.uint64)
    offsets, flags = np.empty(total, np.int64), np.empty(total, np.uint8)
    read = loops.read_keys(
        loops.bytes_of(sections.data),
        (sections.starts, sections.ends),
        (counts, batches.base_offsets, batches.headers["last_offset_delta"].astype(np.int64)),
        (np.uint64(seed.first), np.uint64(seed.second)),
        offsets,
        (first, second),
        flags,
    )
    if read != total:
        return None
    has_key: Mask = (flags & loops.HAS_KEY) != 0
    tombstones: Mask = (flags & loops.IS_TOMBSTONE) != 0
    return KeyRows(offsets, first, second, has_key, tombstones)
