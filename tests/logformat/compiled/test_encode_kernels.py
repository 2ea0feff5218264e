"""Loops that write batches make those that columns make, or leave them to columns."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import encode_batches
from klog.logformat.batches.encode_compiled import _blocks, encode_compiled, supports_compiled
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from tests.logformat.compiled.random_rows import check
from tests.logformat.compiled.test_record_kernels import checked
from tests.logformat.reference_decoder import decode_with_klog
from tests.logformat.written_rows import to_columns
from tests.support.batch_bytes import CODECS, Record
from tests.support.kernels import encode_kernels

ROWS = [Record(at, at - 1, b"k%d" % at, None if at == 2 else b"v" * 40 * at) for at in range(9)]


def test_it_is_whatever_columns_give() -> None:
    whole = sum(map(check, range(300)))
    assert 200 < whole < 290


def test_no_rows_lead_out_of_what_a_loop_was_given(tmp_path: Path) -> None:
    assert "were whole" in checked(tmp_path, "tests.logformat.compiled.random_rows", "1000")


@pytest.mark.parametrize("codec", CODECS)
def test_plain_rows_are_not_left_to_columns(codec: int) -> None:
    batches: list[bytes] = []
    assert rest(to_columns(ROWS), BatchAttributes(batch_bytes=400, codec=codec), batches) == len(
        ROWS
    )
    assert len(batches) > 3
    assert decode_with_klog(b"".join(batches)) == ROWS


def rest(records: Records, form: BatchAttributes, written: list[bytes]) -> int:
    """Take what the loops make, and give the row from which columns have to go on."""
    batches = encode_compiled(records, form, encode_kernels)
    while True:
        try:
            written.append(next(batches))
        except StopIteration as end:
            return int(end.value)


def test_a_column_of_headers_that_are_all_null_is_none() -> None:
    plain, empty_lists = to_columns(ROWS), pa.array([[]] * 9, HEADERS_TYPE)
    for headers, is_supported in ((pa.nulls(9, HEADERS_TYPE), True), (empty_lists, False)):
        records = Records(plain.timestamp_ms, plain.key, plain.value, headers)
        assert supports_compiled(records) == is_supported
        assert list(encode_batches(records, BatchAttributes(), encode_kernels)) == list(
            encode_batches(plain, BatchAttributes())
        )
        assert not is_supported or rest(records, BatchAttributes(), []) == len(ROWS)


def test_chunks_of_few_rows_are_left_to_columns() -> None:
    plain = to_columns([Record(at, 0, b"k", b"v") for at in range(200)])
    for rows, is_supported in ((100, True), (40, False)):
        key = pa.chunked_array([plain.key.slice(at, rows) for at in range(0, 200, rows)])
        records = Records(plain.timestamp_ms, key, plain.value)
        assert supports_compiled(records) == is_supported
        assert list(encode_batches(records, BatchAttributes(), encode_kernels)) == list(
            encode_batches(plain, BatchAttributes())
        )


@pytest.mark.parametrize("bounds", [(0, 40, 20, 60), (0, 70, 70, 60), (0, -5, 20, 60)])
def test_bounds_that_are_none_lead_nowhere(bounds: tuple[int, ...]) -> None:
    """Arrow looks at the first and the last only, unless it is asked to."""
    buffers = [None, pa.py_buffer(np.array(bounds, np.int32)), pa.py_buffer(b"v" * 60)]
    whole = pa.Array.from_buffers(pa.binary(), 3, buffers)
    for field in (whole, whole.slice(1)):
        count = len(field)
        times, sound = pa.array(range(count)), pa.nulls(count, pa.binary())
        for records in (Records(times, field, sound), Records(times, sound, field)):
            for batch_bytes in (61, 600):
                batches: list[bytes] = []
                assert (
                    rest(records, BatchAttributes(batch_bytes=batch_bytes), batches)
                    == len(batches)
                    < count
                )


def test_bounds_may_lie_in_more_bytes_than_they_need() -> None:
    plain = to_columns(ROWS)
    valid, bounds, data = plain.key.buffers()
    longer = pa.py_buffer(bounds.to_pybytes() + b"\0")
    key = pa.Array.from_buffers(pa.binary(), len(ROWS), [valid, longer, data])
    records = Records(plain.timestamp_ms, key, plain.value)
    assert list(encode_batches(records, BatchAttributes(), encode_kernels)) == list(
        encode_batches(plain, BatchAttributes())
    )


def test_small_chunks_are_handed_over_together() -> None:
    """As many as are worth it, and no more: what lies in several is copied."""
    small = [pa.array([b"v" * 100], pa.binary())] * 10_000
    values = pa.chunked_array([*small, _alike(b"v" * 100, 100_000), *small])
    starts = (0, 4096, 8192, 12_288, 77_824, 110_000, 114_096, 118_192, 120_000)
    for key in (pa.nulls(120_000, pa.binary()), values):
        records = Records(pa.array(np.arange(120_000)), key, values)
        assert list(_blocks(records)) == list(pairwise(starts))


@pytest.mark.parametrize("large", [range(8), range(8, 16), range(16), [0], [7, 8], [15]])
def test_of_large_rows_few_are_copied(large: Collection[int]) -> None:
    """However they lie in their chunks."""
    rows = [bytes(1 << 20) if at in large else b"" for at in range(16)]
    chunks = pa.chunked_array([rows[:8], rows[8:]], pa.binary())
    times, nothing = pa.array(np.arange(16)), pa.nulls(16, pa.binary())
    for records in (Records(times, chunks, nothing), Records(times, nothing, chunks)):
        pieces = list(_blocks(records))
        assert (pieces[0][0], pieces[-1][1]) == (0, 16)
        for begin, end in pieces:
            copied = chunks.slice(begin, end - begin).nbytes if begin < 8 < end else 0
            assert copied <= 1 << 20


def _alike(value: bytes, count: int) -> pa.BinaryArray:
    return pa.array([value], pa.binary()).take(pa.array(np.zeros(count, np.int32)))


def test_what_is_before_a_row_that_is_wrong_is_whole() -> None:
    """Columns go on from the first row of its batch."""
    offsets = np.array([0, 1, 2, 3, 4, 5, 6, 6, 8])
    plain = to_columns(ROWS)
    records = Records(plain.timestamp_ms, plain.key, plain.value, None, offsets)
    batches: list[bytes] = []
    next_row = rest(records, BatchAttributes(batch_bytes=400), batches)
    assert decode_with_klog(b"".join(batches)) == ROWS[:next_row]
    assert 3 < next_row < 7


def test_each_loop_is_compiled_once() -> None:
    """Whatever columns look like: chunks, nulls, offsets, bytes that may be changed."""
    encode_kernels.compile_all()
    assert sum(map(check, range(1, 40))) > 20
    changeable = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytearray(8))])
    plain = to_columns([Record(0, 0, b"k", b"v")])
    records = Records(changeable, plain.key, plain.value)
    assert list(encode_batches(records, BatchAttributes(), encode_kernels)) == list(
        encode_batches(plain, BatchAttributes())
    )
    each: list[Any] = [encode_kernels.count_fitting_rows, encode_kernels.encode_records]
    assert [len(loop.signatures) for loop in each] == [1, 1]


@pytest.mark.parametrize(("chunk_rows", "copied_bytes"), [(80_000, 0), (80, 1 << 19)])
def test_what_is_held_is_one_batch(chunk_rows: int, copied_bytes: int) -> None:
    """And what comes of it, whatever there is of records; of small chunks some are copied."""
    chunks = [_alike(b"v" * 100, chunk_rows)] * (80_000 // chunk_rows)
    values = chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)
    records = Records(pa.array(np.arange(80_000)), pa.nulls(80_000, pa.binary()), values)
    batch_bytes = 1 << 18
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        deque(
            encode_batches(records, BatchAttributes(batch_bytes=batch_bytes), encode_kernels),
            maxlen=0,
        )
        assert copied_bytes // 2 <= pool.max_memory() <= copied_bytes
        assert tracemalloc.get_traced_memory()[1] < 2 * batch_bytes + (32 << 10)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
