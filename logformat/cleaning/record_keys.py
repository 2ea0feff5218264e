"""The keys of records as a cleaning compares them: by their hashes.

The rule: data batches come in order and in parts, control batches not at all. Kernels read batches
v2 that are valid. Others, and all without kernels, are decoded into Arrow's columns, which finds
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import PART_BYTES, decode_parts
from klog.logformat.batches.record_sections import RecordSections, record_sections
from klog.logformat.cleaning.key_hash import Hashes, Seed, hash_keys
from klog.logformat.compiled.kernel_arguments import read_only_bytes
from klog.logformat.compiled.kernel_types import RecordKernels

MAX_RECORDS = 1 << 20
"""A part of more records is decoded, which takes fewer at a time."""


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Data records, one a row.

    Attributes:
        offsets: Rising.
        first: The first halves of their keys' hashes.
        second: The second halves.
        has_key: Which keys are not null; the hash of a null has no meaning.
        tombstones: Which values are null.
    """

    offsets: Longs
    first: Hashes
    second: Hashes
    has_key: Mask
    tombstones: Mask


KeyDecoder: TypeAlias = Callable[[bytes, v2.Batches, Seed], Iterator[RecordKeys]]


def decode_keys(
    data: bytes, batches: v2.Batches, seed: Seed, kernels: RecordKernels | None = None
) -> Iterator[RecordKeys]:
    """Yield the keys of data batches, several times as fast with kernels.

    Args:
        data: The bytes that `batches` lie in.
        batches: Data batches.
        seed: The seed of the keys' hashes.
        kernels: The kernels for batches of format v2, None for the numpy path.

    Raises:
        CorruptRecordError: With the position in `data`.
    """
    # The offsets of a wrapper's messages are in its records alone.
    if kernels is None or batches.is_legacy.any():
        yield from _decode_keys_by_columns(data, batches, seed)
        return
    with_records = batches.where(batches.headers["count"] != 0)
    for part, sections in record_sections(data, with_records, PART_BYTES):
        keys = decode_keys_compiled(kernels, part, sections, seed) if len(part) else None
        if keys is not None:
            yield keys
        else:
            yield from _decode_keys_by_columns(data, part, seed)


def decode_keys_compiled(
    kernels: RecordKernels, batches: v2.Batches, sections: RecordSections, seed: Seed
) -> RecordKeys | None:
    """Return the keys of batches v2, read by kernels; None if they must be decoded.

    Args:
        kernels: The kernels for batches of format v2, None for the numpy path.
        batches: Data batches v2 with records.
        sections: Where their records lie.
        seed: The seed of the keys' hashes.
    """
    counts = batches.headers["count"].astype(np.int64)
    total = int(counts.sum())
    if total > MAX_RECORDS:
        return None
    first, second = np.empty((2, total), np.uint64)
    offsets, flags = np.empty(total, np.int64), np.empty(total, np.uint8)
    record_count = kernels.decode_keys(
        read_only_bytes(sections.data),
        (sections.starts, sections.ends),
        (counts, batches.base_offsets, batches.headers["last_offset_delta"].astype(np.int64)),
        (np.uint64(seed.first), np.uint64(seed.second)),
        offsets,
        (first, second),
        flags,
    )
    if record_count != total:
        return None
    has_key: Mask = (flags & kernels.HAS_KEY) != 0
    tombstones: Mask = (flags & kernels.IS_TOMBSTONE) != 0
    return RecordKeys(offsets, first, second, has_key, tombstones)


def _decode_keys_by_columns(data: bytes, batches: v2.Batches, seed: Seed) -> Iterator[RecordKeys]:
    for part in decode_parts(data, batches, ("key", "is_tombstone")):
        assert part.key is not None
        assert part.is_tombstone is not None
        first, second = hash_keys(part.key, seed)
        has_key: Mask = np.ones(len(first), np.bool_)
        if part.key.null_count:
            has_key = part.key.is_valid().to_numpy(zero_copy_only=False)
        yield RecordKeys(part.offset, first, second, has_key, part.is_tombstone)
