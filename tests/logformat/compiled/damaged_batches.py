"""Batches of records of all shapes, whole and damaged, for loops that numba compiled.

    NUMBA_BOUNDSCHECK=1 python -m tests.logformat.compiled.damaged_batches 2000

The rule: run so, with numba's own check of every index, no input makes a loop read or write outside
of what it was given; and whatever it is given, it gives what Arrow's columns give, or the same
error.
"""

from __future__ import annotations

import random
import sys
from functools import partial

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.varint import PADDING
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.filter_records import RecordFilter, compiled_filter
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.record_keys import KeyDecoder, RecordKeys, decode_keys
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from tests.support.batch_bytes import (
    CODECS,
    DELETE_HORIZON,
    NONE,
    Record,
    batch,
    record,
    sealed,
    varint,
)
from tests.support.kernels import record_kernels

SEED = Seed(3, 1 << 63)
NAMES = ("", "h", "name" * 40, "n\u00e4me")
_KEY_BYTES = (0, 1, 7, 8, 9, 16, 63, 64, 200)
_HEADER_BYTES = 61
_LENGTHS = (b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x01", b"\xfe\xff\x7f", b"\x80\x40", b"\x01")
"""Of huge and small fields, and of null."""


def drawn(seed: int) -> tuple[bytes, list[int]]:
    """Make some batches, and give how many records each has; half of the batches are damaged.

    Those of one seed in two are not compressed: where padding follows, they are taken as they lie.
    """
    rng = random.Random(seed)
    data, counts, offset = b"", [], rng.choice((0, 5, 1 << 40))
    codecs = CODECS if seed % 2 else (NONE,)
    for _ in range(rng.randint(1, 4)):
        records = _records(rng, offset, rng.choice((1, 2, 5, 40)))
        wide = rng.choice(((1, 1, 1), (1, 1, 1), (3, 4, 2), (5, 10, 5)))
        attributes = rng.choice(codecs) | rng.choice((0, 0, DELETE_HORIZON))
        base = records[0].offset - rng.randint(0, min(3, records[0].offset))
        batch_bytes = batch(
            records,
            base_offset=base,
            base_timestamp=rng.choice((records[0].timestamp, 0, -7, 1 << 40)),
            last_offset_delta=records[-1].offset - base + rng.randint(0, 3),
            attributes=attributes,
            wide=wide,
        )
        if rng.random() < 0.5:
            batch_bytes = _damaged(rng, batch_bytes)
        data, offset = (
            data + batch_bytes,
            int(scan_batches(batch_bytes, 0, len(batch_bytes)).next_offsets[0]) + 3,
        )
        counts.append(len(records))
    return data, counts


def _records(rng: random.Random, offset: int, count: int) -> list[Record]:
    records = []
    for _ in range(count):
        offset += rng.choice((1, 1, 1, 70))
        key = None if rng.random() < 0.1 else rng.randbytes(rng.choice(_KEY_BYTES))
        value = None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 3, 100, 8200)))
        headers = tuple(
            (rng.choice(NAMES), rng.choice((None, b"", b"x" * 70)))
            for _ in range(rng.choice((0, 0, 0, 1, 3)))
        )
        timestamp = rng.choice((-1, 0, 1_700_000_000_000, 1_700_000_000_000 + offset, (1 << 62)))
        records.append(Record(offset, timestamp, key, value, headers))
    return records


def _damaged(rng: random.Random, intact: bytes) -> bytes:
    """Change a byte of the records, or of the header what says how many there are."""
    changed = bytearray(intact)
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.choice((rng.randrange(_HEADER_BYTES, len(intact)), rng.choice((26, 60))))
        new = rng.choice((*_LENGTHS, bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF))])))
        if at < _HEADER_BYTES:
            changed[at] = new[0]
        else:
            changed[at : at + len(new)] = new[: len(intact) - at]
    try:
        scan_batches(resealed := sealed(bytes(changed)), 0, len(resealed))
    except CorruptRecordError:  # Nobody comes to its records.
        return intact
    return resealed


def crafted() -> list[bytes]:
    """Make batches of two records, one varint of the second another one: of a huge field, say."""
    name, value = b"name", b"x" * 9
    pieces = [b"\0", b"\0", varint(1), varint(3), b"key", varint(9), value]
    pieces += [varint(2), *(varint(4), name, varint(9), value) * 2]
    numbers = [at for at, piece in enumerate(pieces) if at and len(piece) == 1]
    data = batch([Record(0, 0), Record(1, 0)])
    first = record(Record(0, 0), 0, 0)
    batches = []
    for at in numbers:
        for new in _LENGTHS:
            body = b"".join([*pieces[:at], new, *pieces[at + 1 :]])
            payload = first + varint(len(body)) + body
            length = (49 + len(payload)).to_bytes(4, "big")
            batches.append(sealed(data[:8] + length + data[12:_HEADER_BYTES] + payload))
    return batches


def keys_of(data: bytes, read: KeyDecoder) -> list[list[object]] | str:
    """Read all keys, or say that there is an error."""
    batches = scan_batches(data, 0, len(data))
    try:
        rows = list(read(data + bytes(PADDING), batches, SEED))
    except CorruptRecordError:
        return "corrupt"  # Where first, if several batches are, what lay in a buffer may decide.
    return [
        np.concatenate([getattr(row, name) for row in rows]).tolist()
        for name in RecordKeys.__slots__
    ]


def left_of(data: bytes, kept: list[bool], record_filter: RecordFilter | None) -> bytes | str:
    """SegmentCleaner what is kept, or say that there is an error."""
    marks = RetainedBitmap(len(kept), np.packbits(np.array(kept, np.bool_)).tobytes(), b"", False)
    cleaner = SegmentCleaner(marks, CleaningContext(0, 99), record_filter)
    try:
        batches = scan_batches(data, 0, len(data))
        return b"".join(run.data for run in cleaner.clean(data + bytes(PADDING), batches))
    except CorruptRecordError:
        return "corrupt"  # Where first, if several batches are, what lay in a buffer may decide.
    except ValueError as exc:
        return str(exc)


def check(seed: int) -> bool:
    """Hold both loops to what columns give; tells whether there was nothing wrong."""
    data, counts = drawn(seed)
    rng = random.Random(seed)
    share = rng.choice((0.1, 0.5, 0.9))
    return agree(data, [rng.random() < share for _ in range(sum(counts))])


def agree(data: bytes, kept: list[bool]) -> bool:
    """Hold both loops to what columns give of some batches, and tell whether that is no error."""
    keys = keys_of(data, decode_keys)
    assert keys_of(data, partial(decode_keys, kernels=record_kernels)) == keys, data.hex()
    left = left_of(data, kept, None)
    assert left_of(data, kept, compiled_filter(record_kernels)) == left, data.hex()
    return not isinstance(keys, str) and not isinstance(left, str)


if __name__ == "__main__":
    for data in crafted():
        agree(data, [False, True])  # Neither reads a batch that keeps all its records.
    whole = sum(map(check, range(int(sys.argv[1]))))
    sys.stdout.write(f"{whole} of {sys.argv[1]} were whole\n")
