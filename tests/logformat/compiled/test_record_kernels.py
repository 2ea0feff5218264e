"""What numba compiled gives what Arrow's columns give, or leaves it to them; never is it wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import PART_BYTES
from klog.logformat.batches.record_sections import record_sections
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.varint import PADDING
from klog.logformat.cleaning import filter_records, record_keys
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.filter_records import NO_HORIZON, compiled_filter
from tests.logformat.compiled.damaged_batches import SEED, check, keys_of
from tests.support.batch_bytes import (
    CODECS,
    GZIP,
    LOG_APPEND_TIME,
    NONE,
    ZSTD,
    Record,
    batch,
    plain,
)
from tests.support.kernels import hash_table_kernels, record_kernels
from tests.support.legacy_bytes import wrapper
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

RECORDS = [
    Record(0, 5, b"k", b"v" * 300),
    Record(2, 1 << 41, b"key", None),
    Record(3, 0, None, b"", (("h", b"x"), ("g", None))),
]


def scan(data: bytes) -> v2.Batches:
    return scan_batches(data, 0, len(data))


def test_it_is_whatever_columns_give() -> None:
    whole = sum(map(check, range(400)))
    assert 50 < whole < 350


def checked(cache: Path, *command: str) -> str:
    """Run a module of Python's with numba's check of every index, which it else has not."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout


def test_no_input_leads_out_of_what_a_loop_was_given(tmp_path: Path) -> None:
    assert "were whole" in checked(tmp_path, "tests.logformat.compiled.damaged_batches", "400")


def test_no_key_leads_out_of_a_table(tmp_path: Path) -> None:
    """While it fills, grows and gives keys up."""
    tests = "tests/logformat/cleaning/test_offset_map.py"
    result = checked(
        tmp_path, "pytest", "-v", tests, "-k", "(hashed or absent) and not take_no and not dict"
    )
    for name in (
        "test_more_memory_holds_more_keys",
        "test_full_map_drops_the_upper_half",
        "test_put_if_absent_takes_the_last_of_each_key",
    ):
        assert name in result


@pytest.mark.parametrize("codec", CODECS)
def test_plain_records_are_not_left_to_columns(codec: int) -> None:
    data = batch(RECORDS, attributes=codec) + batch([Record(9, 1, b"z", b"")], attributes=codec)
    for part, sections in record_sections(data, scan(data), PART_BYTES):
        assert record_keys.decode_keys_compiled(record_kernels, part, sections, SEED) is not None
    retained = np.array([True, False, True, True])
    result = compiled_filter(record_kernels)(data, scan(data), retained, np.full(2, NO_HORIZON))
    assert result is not None
    assert [(header.base_timestamp, header.max_timestamp, header.count) for header in result] == [
        (5, 5, 2),
        (1, 1, 1),
    ]


@pytest.mark.parametrize(
    "data",
    [
        batch(RECORDS, wide=(1, 1, 2)),
        batch([Record(0, 0, b"k", b"v", (("\u00e4", b""),))]),
        batch(RECORDS, attributes=LOG_APPEND_TIME),
    ],
)
def test_what_might_be_written_otherwise_is_left_to_columns(data: bytes) -> None:
    count = int(scan(data).headers["count"][0])
    every = np.ones(count, np.bool_)
    assert compiled_filter(record_kernels)(data, scan(data), every, np.full(1, NO_HORIZON)) is None


def test_each_loop_is_compiled_once() -> None:
    """Before there is a record, and wherever the first few or many lie then."""
    record_kernels.compile_all()
    hash_table_kernels.compile_all()
    for codec in (NONE, ZSTD):
        data = batch(RECORDS, attributes=codec) + bytes(PADDING)
        batches = scan_batches(data, 0, len(data) - PADDING)
        (rows,) = record_keys.decode_keys(data, batches, SEED, record_kernels)
        retained = np.array([True, False, True])
        assert CompiledOffsetMap(hash_table_kernels, 1 << 20).put_if_absent(
            rows.first[1:], rows.second[1:], retained[1:]
        )
        offset_map = CompiledOffsetMap(hash_table_kernels, 1 << 20)
        offset_map.put(rows.first, rows.second, np.arange(len(rows.offsets)))
        assert offset_map.find(rows.first, rows.second).tolist() == [0, 1, 2]
        kept = np.array([True, False, True])
        assert (
            compiled_filter(record_kernels)(data, batches, kept, np.full(1, NO_HORIZON)) is not None
        )
    each: list[Any] = [record_kernels.decode_keys, record_kernels.filter_records]
    each += [
        hash_table_kernels.put,
        hash_table_kernels.put_if_absent,
        hash_table_kernels.find,
        hash_table_kernels.move,
    ]
    assert [len(loop.signatures) for loop in each] == [1] * len(each)


@pytest.mark.parametrize(
    "data",
    [
        plain(6, [b"v"]) + wrapper([Record(at, 1) for at in (5, 6, 7)], 1, GZIP),
        wrapper([Record(at, 1) for at in (0, 500, 1000)], 0, GZIP, offset=0) + plain(5, [b"v"]),
    ],
)
def test_what_a_wrapper_holds_is_held_to_what_lies_around_it(data: bytes) -> None:
    for kernels in (None, record_kernels):
        read = partial(record_keys.decode_keys, kernels=kernels)
        assert keys_of(data, read) == "corrupt"


def test_no_more_is_held_than_columns_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batch([Record(at, 0, b"k", b"v" * 900)]) for at in range(9))
    for max_bytes, is_left in ((9000, False), (8000, True)):
        monkeypatch.setattr(filter_records, "MAX_DECODED_BYTES", max_bytes)
        result = compiled_filter(record_kernels)(
            data, scan(data), np.ones(9, np.bool_), np.full(9, NO_HORIZON)
        )
        assert (result is None) == is_left
