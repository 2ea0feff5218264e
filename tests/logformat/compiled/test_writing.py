"""Loops that write batches make those that columns make, or leave them to columns."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat.compiled import compiling, writing
from klog.logformat.compiled.compiling import Rented, writing_loops
from klog.logformat.encode import encode
from klog.logformat.filling import _pieces, filled
from klog.logformat.form import Form
from klog.logformat.headers import HEADERS_TYPE
from klog.logformat.records import Records
from tests.encode import CODECS, Record
from tests.logformat.compiled.rows_to_write import check
from tests.logformat.compiled.test_loops import checked
from tests.logformat.decoding import by_klog
from tests.logformat.ways import BY_COLUMNS, BY_LOOPS
from tests.logformat.writing import columns

ROWS = [Record(at, at - 1, b"k%d" % at, None if at == 2 else b"v" * 40 * at) for at in range(9)]


def test_it_is_whatever_columns_give() -> None:
    whole = sum(map(check, range(300)))
    assert 200 < whole < 290


def test_no_rows_lead_out_of_what_a_loop_was_given(tmp_path: Path) -> None:
    assert "were whole" in checked(tmp_path, "tests.logformat.compiled.rows_to_write", "1000")


@pytest.mark.parametrize("codec", CODECS)
def test_plain_rows_are_not_left_to_columns(codec: int) -> None:
    made: list[bytes] = []
    assert rest(columns(ROWS), Form(batch_bytes=400, codec=codec), made) == len(ROWS)
    assert len(made) > 3
    assert by_klog(b"".join(made)) == ROWS


def rest(records: Records, form: Form, made: list[bytes]) -> int:
    """Take what the loops make, and give the row from which columns have to go on."""
    batches = filled(records, form, writing)
    while True:
        try:
            made.append(next(batches))
        except StopIteration as end:
            return int(end.value)


def test_a_column_of_headers_that_are_all_null_is_none() -> None:
    """And who writes others does not load the loops for it."""
    plain = columns(ROWS)
    for headers, loaded in ((pa.nulls(9, HEADERS_TYPE), 1), (pa.array([[]] * 9, HEADERS_TYPE), 0)):
        given = Records(plain.timestamp_ms, plain.key, plain.value, headers)
        rented, asked = counted(-1)
        assert list(encode(given, Form(), rented)) == list(encode(plain, Form(), BY_COLUMNS))
        assert len(asked) == loaded
        assert not loaded or rest(given, Form(), []) == len(ROWS)


def test_chunks_of_few_rows_are_left_to_columns() -> None:
    plain = columns([Record(at, 0, b"k", b"v") for at in range(200)])
    for rows, loaded in ((100, 1), (40, 0)):
        key = pa.chunked_array([plain.key.slice(at, rows) for at in range(0, 200, rows)])
        rented, asked = counted(-1)
        given = Records(plain.timestamp_ms, key, plain.value)
        assert list(encode(given, Form(), rented)) == list(encode(plain, Form(), BY_COLUMNS))
        assert len(asked) == loaded


def counted(worth_records: int) -> tuple[Rented[ModuleType], list[int]]:
    """Rent the loops; the list gets an element each time that they are loaded."""
    asked: list[int] = []

    def load() -> Any:
        asked.append(1)
        return writing

    return Rented(load, worth_records), asked


@pytest.mark.parametrize("bounds", [(0, 40, 20, 60), (0, 70, 70, 60), (0, -5, 20, 60)])
def test_bounds_that_are_none_lead_nowhere(bounds: tuple[int, ...]) -> None:
    """Arrow looks at the first and the last only, unless it is asked to."""
    buffers = [None, pa.py_buffer(np.array(bounds, np.int32)), pa.py_buffer(b"v" * 60)]
    whole = pa.Array.from_buffers(pa.binary(), 3, buffers)
    for field in (whole, whole.slice(1)):
        count = len(field)
        times, sound = pa.array(range(count)), pa.nulls(count, pa.binary())
        for given in (Records(times, field, sound), Records(times, sound, field)):
            for batch_bytes in (61, 600):
                made: list[bytes] = []
                assert rest(given, Form(batch_bytes=batch_bytes), made) == len(made) < count


def test_bounds_may_lie_in_more_bytes_than_they_need() -> None:
    plain = columns(ROWS)
    valid, bounds, data = plain.key.buffers()
    longer = pa.py_buffer(bounds.to_pybytes() + b"\0")
    key = pa.Array.from_buffers(pa.binary(), len(ROWS), [valid, longer, data])
    given = Records(plain.timestamp_ms, key, plain.value)
    assert list(encode(given, Form(), BY_LOOPS)) == list(encode(plain, Form(), BY_COLUMNS))


def test_small_chunks_are_handed_over_together() -> None:
    """As many as are worth it, and no more: what lies in several is copied."""
    small = [pa.array([b"v" * 100], pa.binary())] * 10_000
    values = pa.chunked_array([*small, _alike(b"v" * 100, 100_000), *small])
    starts = (0, 4096, 8192, 12_288, 77_824, 110_000, 114_096, 118_192, 120_000)
    for key in (pa.nulls(120_000, pa.binary()), values):
        given = Records(pa.array(np.arange(120_000)), key, values)
        assert list(_pieces(given)) == list(pairwise(starts))


@pytest.mark.parametrize("large", [range(8), range(8, 16), range(16), [0], [7, 8], [15]])
def test_of_large_rows_few_are_copied(large: Collection[int]) -> None:
    """However they lie in their chunks."""
    rows = [bytes(1 << 20) if at in large else b"" for at in range(16)]
    chunks = pa.chunked_array([rows[:8], rows[8:]], pa.binary())
    times, nothing = pa.array(np.arange(16)), pa.nulls(16, pa.binary())
    for given in (Records(times, chunks, nothing), Records(times, nothing, chunks)):
        pieces = list(_pieces(given))
        assert (pieces[0][0], pieces[-1][1]) == (0, 16)
        for begin, end in pieces:
            copied = chunks.slice(begin, end - begin).nbytes if begin < 8 < end else 0
            assert copied <= 1 << 20


def _alike(value: bytes, count: int) -> pa.BinaryArray:
    return pa.array([value], pa.binary()).take(pa.array(np.zeros(count, np.int32)))


def test_what_is_before_a_row_that_is_wrong_is_whole() -> None:
    """Columns go on from the first row of its batch."""
    offsets = np.array([0, 1, 2, 3, 4, 5, 6, 6, 8])
    plain = columns(ROWS)
    given = Records(plain.timestamp_ms, plain.key, plain.value, None, offsets)
    made: list[bytes] = []
    behind = rest(given, Form(batch_bytes=400), made)
    assert by_klog(b"".join(made)) == ROWS[:behind]
    assert 3 < behind < 7


def test_each_loop_is_compiled_once() -> None:
    """Whatever columns look like: chunks, nulls, offsets, bytes that may be changed."""
    writing.compile_all()
    assert sum(map(check, range(1, 40))) > 20
    changeable = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytearray(8))])
    plain = columns([Record(0, 0, b"k", b"v")])
    given = Records(changeable, plain.key, plain.value)
    assert list(encode(given, Form(), BY_LOOPS)) == list(encode(plain, Form(), BY_COLUMNS))
    each: list[Any] = [writing.fit, writing.write]
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
        deque(encode(records, Form(batch_bytes=batch_bytes), BY_LOOPS), maxlen=0)
        assert copied_bytes // 2 <= pool.max_memory() <= copied_bytes
        assert tracemalloc.get_traced_memory()[1] < 2 * batch_bytes + (32 << 10)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def test_loops_are_loaded_once_they_are_worth_it() -> None:
    rented, asked = counted(100)
    assert [rented.given(40) for _ in range(4)] == [None, None, writing, writing]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ([(40, 100), (40, 60)], [False, False]),
        ([(40, 101), (1, 1)], [True, True]),
        ([(40, 0), (20, 61), (1, 1)], [False, True, True]),
    ],
)
def test_what_is_still_to_do_counts_too(given: list[tuple[int, int]], loaded: list[bool]) -> None:
    """With what was done without them; and once they are loaded they are always used."""
    rented, _ = counted(100)
    assert [rented.given(*one) is not None for one in given] == loaded


def test_loops_of_which_nothing_is_kept_are_worth_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where klog lies in a zip, each process compiles them."""
    monkeypatch.setattr(compiling, "_is_zipped", lambda module: True)
    rented, asked = counted(100)
    assert [rented.given(100) is None for _ in range(5)] == [True] * 4 + [False]
    assert len(asked) == 1


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "find_spec", lambda name: None)
    assert writing_loops.__wrapped__() is None
