"""Cleaning from the newest batch: the result does not depend on the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from klog.logformat.batches.decode_records import PART_BYTES
from klog.logformat.cleaning import clean_newest_first
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_newest_first import (
    CleanedBlock,
    NewestFirstCleaner,
    OffsetMapFullError,
)
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES
from klog.logformat.compiled.kernel_types import CleaningKernels
from tests.logformat.cleaning.cleaning_rounds import (
    SEED,
    Round,
    cleaned_newest_first,
    runs_of,
    scan,
)
from tests.support.batch_bytes import CODECS, GZIP, NONE, Record, batch, plain
from tests.support.kernels import hash_table_kernels, record_kernels
from tests.support.legacy_bytes import wrapper

CONTEXT = CleaningContext(0, 1000)


def blocks_of(data: bytes, map_bytes: int = 1 << 20) -> list[CleanedBlock]:
    cleaner = NewestFirstCleaner(
        CleaningKernels(record_kernels, hash_table_kernels),
        SEED,
        CompiledOffsetMap(hash_table_kernels, map_bytes),
        0,
    )
    batches = scan(data)
    return list(cleaner.clean(data, batches, np.zeros(len(batches), np.bool_), CONTEXT))


def check_against_key_scan(data: bytes) -> None:
    """Check that a segment is cleaned as by a key scan and a second reading."""
    (runs,) = runs_of([data], Round())
    assert cleaned_newest_first([data], Round()) == [b"".join(run.data for run in runs)]


def keyed(base_offset: int, count: int, value: bytes, codec: int) -> bytes:
    records = [Record(base_offset + n, 1000, b"k%d" % (n % 7), value) for n in range(count)]
    return batch(records, attributes=codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("value_bytes", [50, PART_BYTES // 40, PART_BYTES // 4])
def test_records_of_any_size(codec: int, value_bytes: int) -> None:
    """Values are zeros, so a block, or even a batch, may decompress to more than a buffer holds."""
    data = b"".join(keyed(9 * number, 9, bytes(value_bytes), codec) for number in range(12))
    check_against_key_scan(data + keyed(200, 3, b"end", codec))


def test_blocks_follow_the_compression_ratio() -> None:
    """From the second block on, each decompresses to about one buffer."""
    value = np.random.default_rng(3).bytes(20_000)
    data = b"".join(keyed(9 * number, 9, value, NONE) for number in range(120))
    assert len(blocks_of(data)) <= len(data) // (clean_newest_first._BLOCK_BYTES // 2)
    check_against_key_scan(data)


@pytest.mark.parametrize("max_records", [1, 8, 9, 10, 40])
def test_blocks_of_few_records(monkeypatch: pytest.MonkeyPatch, max_records: int) -> None:
    """A batch with more records than a block may have is a block, and so is a wrapper."""
    monkeypatch.setattr(clean_newest_first, "PART_RECORDS", max_records)
    data = b"".join(keyed(9 * number, 9, b"v", GZIP) for number in range(20))
    assert len(blocks_of(data)) == -(-20 // max(max_records // 9, 1))
    check_against_key_scan(data)
    wrappers = plain(0, [b"v"] * 3) + b"".join(
        wrapper([Record(base_offset + n, 1, b"k%d" % n, b"v") for n in range(4)], 1, GZIP)
        for base_offset in (3, 7, 11)
    )
    check_against_key_scan(wrappers)


def test_more_keys_than_memory_holds() -> None:
    data = batch([Record(n, 1000, b"%d" % n, b"v") for n in range(MIN_MAP_BYTES // 24)])
    with pytest.raises(OffsetMapFullError):
        blocks_of(data, MIN_MAP_BYTES)
    assert [block.is_unchanged for block in blocks_of(data)] == [True]


def test_batch_with_a_new_horizon_has_changed() -> None:
    """It has the same size as before."""
    data = batch([Record(0, 1000, b"a", None)])
    (block,) = blocks_of(data)
    assert (block.is_unchanged, len(block.runs[0].data)) == (False, len(data))
