"""Entries of formats v0 and v1, whole and damaged, for loops that numba compiled.

    NUMBA_BOUNDSCHECK=1 python -m tests.logformat.compiled.damaged_messages 2000

The rule: run so, with numba's own check of every index, no input makes a loop read or write outside
of what it was given; and whatever it is given, it gives what columns give, or the same error.
"""

from __future__ import annotations

import random
import struct
import sys

from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.compiled.kernel_types import LegacyKernels
from tests.logformat.legacy_logs import ALL, LEGACY_CODECS, rows
from tests.support.batch_bytes import LOG_APPEND_TIME, NONE, Record
from tests.support.kernels import legacy_kernels
from tests.support.legacy_bytes import Seen, message, sealed, wrapper

_SIZES = (0, 1, 3, 40, 300, 5000)
_LENGTHS = (-1, -(1 << 31), 0, 1, 13, 14, 21, 22, 255, (1 << 31) - 1)


def drawn(seed: int) -> bytes:
    """Make some entries, half of them damaged; what damages a wrapper's inside keeps its CRC."""
    rng = random.Random(seed)
    entries, offset = [], rng.choice((1, 5, 1 << 40))
    for _ in range(rng.randint(1, 4)):
        records = _records(rng, offset, rng.choice((1, 2, 5, 40)))
        offset = records[-1].offset + 1
        magic = rng.choice((0, 1))
        attributes = rng.choice((0, LOG_APPEND_TIME)) if magic else 0
        codec = rng.choice((NONE, *LEGACY_CODECS))
        inner = [
            message(record, rng.choice((magic, magic, magic, 1 - magic))) for record in records
        ]
        if rng.random() < 0.3:
            number = rng.randrange(len(inner))
            inner[number] = _damaged(rng, inner[number])
        if codec == NONE:
            entries.append(b"".join(map(_framed, inner)))
        else:
            entries.append(
                wrapper(records, magic, codec, attributes=attributes, inner=b"".join(inner))
            )
    return b"".join(entries)


def _records(rng: random.Random, offset: int, count: int) -> list[Record]:
    records = []
    for _ in range(count):
        offset += rng.choice((1, 1, 1, 70))
        key = None if rng.random() < 0.2 else rng.randbytes(rng.choice(_SIZES))
        value = None if rng.random() < 0.2 else rng.randbytes(rng.choice(_SIZES))
        records.append(Record(offset, rng.choice((-1, 0, 1_700_000_000_000)), key, value))
    return records


def _damaged(rng: random.Random, intact: bytes) -> bytes:
    """Change a length or any byte of a message, cut it or add to it; most then keep their CRC."""
    changed = bytearray(intact)
    kind = rng.randrange(4)
    if kind == 0:
        at = rng.choice((8, 18 if changed[16] == 0 else 26, rng.randrange(8, len(intact) - 3)))
        struct.pack_into(">i", changed, at, rng.choice(_LENGTHS))
    elif kind == 1:
        changed[rng.randrange(len(intact))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        changed = changed[: rng.randrange(1, len(intact))]
    else:
        changed += rng.randbytes(rng.choice((1, 5, 40)))
    return sealed(bytes(changed)) if rng.random() < 0.7 and len(changed) >= 16 else bytes(changed)


def _framed(message_bytes: bytes) -> bytes:
    """Let a lone entry be found by a scan, however damaged it is."""
    if len(message_bytes) < 26 or message_bytes[16] > 1:
        return b""
    return message_bytes[:8] + struct.pack(">i", len(message_bytes) - 12) + message_bytes[12:]


def outcome(data: bytes, kernels: LegacyKernels | None, *, checked: bool) -> list[Seen] | str:
    """Return all messages, or the error and its position."""
    try:
        batches = scan_batches(data, 0, len(data))
        if checked:
            check_batch_crcs(data, batches, kernels)
        return [
            row for part in decode_parts(data, batches, ALL, kernels=kernels) for row in rows(part)
        ]
    except CorruptRecordError as exc:
        return str(exc)


def check(seed: int) -> bool:
    """Hold the loops to what columns give, and tell whether there was nothing wrong."""
    data = drawn(seed)
    results = [outcome(data, kernels, checked=bool(seed % 2)) for kernels in (None, legacy_kernels)]
    assert results[0] == results[1], seed
    return not isinstance(results[0], str)


if __name__ == "__main__":
    whole = sum(map(check, range(int(sys.argv[1]))))
    sys.stdout.write(f"{whole} of {sys.argv[1]} were whole\n")
