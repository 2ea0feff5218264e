"""Rows of all shapes, some that no batch can hold, for loops that numba compiled.

    NUMBA_BOUNDSCHECK=1 python -m tests.logformat.compiled.random_rows 2000

The rule: run so, with numba's own check of every index, no rows make a loop read or write outside
of what it was given; and whatever they are, it makes the batches that columns make, and the same
error after them.
"""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat.batches import encode_compiled
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import encode_batches
from klog.logformat.batches.records_to_write import Records
from klog.logformat.codecs.codec_names import GZIP, LZ4, NONE, ZSTD
from klog.logformat.compiled.kernel_types import EncodeKernels
from tests.support.kernels import encode_kernels

_NOW_MS = 1_700_000_000_000
_TIMES = (-1, 0, _NOW_MS, _NOW_MS + 63, _NOW_MS + 8191, 1 << 62, (1 << 63) - 1)
_SIZES = (0, 0, 1, 7, 16, 63, 64, 100, 8192, 70_000)
_WRONG = (None, -2, -(1 << 63))


def drawn(seed: int) -> tuple[Records, BatchAttributes]:
    """Make rows and what their batches have in common; those of one seed in five are wrong."""
    rng = random.Random(seed)
    count = rng.choice((0, 1, 2, 30, 300))
    times: list[int | None] = [rng.choice(_TIMES) for _ in range(count)]
    if count and not seed % 5:
        times[rng.randrange(count)] = rng.choice(_WRONG)
    records = Records(
        timestamp_ms=_cut(rng, pa.array(times, pa.int64())),
        key=_cut(rng, _field(rng, count)),
        value=_cut(rng, _field(rng, count)),
        offset=rng.choice((0, 7, 1 << 40)) if rng.random() < 0.5 else _offsets(rng, count, seed),
        is_from_log=rng.random() < 0.3,
    )
    return records, _form(rng)


def _field(rng: random.Random, count: int) -> pa.Array:
    """Make bytes, which may lie in the midst of others and be under a null."""
    max_sizes = rng.choice((3, 6, len(_SIZES)))
    nulls = rng.choice((0.0, 0.0, 0.3, 1.0))
    data = [rng.randbytes(rng.choice(_SIZES[:max_sizes])) for _ in range(count + 3)]
    begin = rng.randint(0, 3)
    valid, bounds, held = pa.array(data, pa.binary()).buffers()
    if nulls:
        bits = np.array([rng.random() >= nulls for _ in data])
        valid = pa.py_buffer(np.packbits(bits, bitorder="little"))
    whole = pa.Array.from_buffers(pa.binary(), len(data), [valid, bounds, held])
    return whole.slice(begin, count)


def _cut(rng: random.Random, column: pa.Array) -> Any:
    """Cut a column into chunks, some of them empty, or not."""
    cuts = sorted(rng.randint(0, len(column)) for _ in range(rng.choice((0, 0, 1, 4, 40))))
    if not cuts:
        return column
    bounds = [0, *cuts, len(column)]
    parts = [column.slice(a, b - a) for a, b in pairwise(bounds)]
    return pa.chunked_array(parts, column.type)


def _offsets(rng: random.Random, count: int, seed: int) -> Any:
    """Make offsets with gaps, which may be more than a batch can span, or not rise."""
    steps = [rng.choice((1, 1, 1, 64, 1 << 14, (1 << 31) - 1, 1 << 31)) for _ in range(count)]
    if count and not seed % 7:
        steps[rng.randrange(count)] = rng.choice((0, -1, -(1 << 62), (1 << 63) - 1))
    with np.errstate(over="ignore"):
        return np.cumsum(np.array(steps, np.int64)) - rng.choice((0, 1))


def _form(rng: random.Random) -> BatchAttributes:
    producer: dict[str, Any] = {
        "producer_id": 4000,
        "producer_epoch": 3,
        "base_sequence": (1 << 31) - 20,
    }
    return BatchAttributes(
        batch_bytes=rng.choice((0, 61, 100, 500, 5000, 1 << 19)),
        codec=rng.choice((NONE, NONE, NONE, GZIP, LZ4, ZSTD)),
        leader_epoch=rng.choice((-1, 0)),
        append_time_ms=rng.choice((None, None, 5)),
        delete_horizon_ms=rng.choice((None, None, 0, _NOW_MS)),
        **rng.choice(({}, producer)),
    )


def encoded(
    records: Records, form: BatchAttributes, kernels: EncodeKernels | None
) -> tuple[list[bytes], str]:
    """Encode rows; return the batches, and the error of a wrong row."""
    batches: list[bytes] = []
    try:
        batches.extend(encode_batches(records, form, kernels))
    except ValueError as exc:
        return batches, str(exc)
    return batches, ""


def check(seed: int) -> bool:
    """Compare the loops with the columns; return whether every row was valid.

    Rows come in relatively small chunks. The columns detect a wrong row before they yield the last
    batches before it.
    """
    records, form = drawn(seed)
    batches, reason = encoded(records, form, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode_compiled, "_MIN_BLOCK_ROWS", (1, 50, 1 << 12)[seed % 3])
        patch.setattr(encode_compiled, "_MIN_CHUNK_ROWS", 0)
        patch.setattr(encode_compiled, "_MAX_BLOCK_ROWS", (1 << 16, 70)[seed % 2])
        compiled_batches, compiled_reason = encoded(records, form, encode_kernels)
    assert compiled_reason == reason, seed
    assert compiled_batches[: len(batches)] == batches, seed
    assert reason or len(compiled_batches) == len(batches), seed
    return not reason


if __name__ == "__main__":
    whole = sum(map(check, range(int(sys.argv[1]))))
    sys.stdout.write(f"{whole} of {sys.argv[1]} were whole\n")
