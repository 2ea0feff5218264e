"""What numba compiled gives what Arrow's columns give, or leaves it to them; never is it wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klog.logformat import batch as v2
from klog.logformat.cleaning import keys, thinned
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.thinned import NO_HORIZON, thin_by
from klog.logformat.columnar import PART_BYTES
from klog.logformat.compiled import compiling, loops, tables
from klog.logformat.sections import record_sections
from klog.logformat.varint import PADDING
from tests.encode import CODECS, GZIP, LOG_APPEND_TIME, NONE, ZSTD, Record, batch, plain
from tests.encode_legacy import wrapper
from tests.logformat.compiled.damaged import SEED, check, keys_of

ROOT = Path(__file__).parents[3]
RECORDS = [
    Record(0, 5, b"k", b"v" * 300),
    Record(2, 1 << 41, b"key", None),
    Record(3, 0, None, b"", (("h", b"x"), ("g", None))),
]


def scan(data: bytes) -> v2.Batches:
    return v2.scan(data, 0, len(data))


def test_it_is_whatever_columns_give() -> None:
    whole = sum(map(check, range(400)))
    assert 50 < whole < 350


def checked(cache: Path, *command: str) -> str:
    """Run a module of Python's with numba's check of every index, which it else has not."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout


def test_no_input_leads_out_of_what_a_loop_was_given(tmp_path: Path) -> None:
    assert "were whole" in checked(tmp_path, "tests.logformat.compiled.damaged", "1500")


def test_no_key_leads_out_of_a_table(tmp_path: Path) -> None:
    """While it fills, grows and gives keys up."""
    tests = "tests/logformat/cleaning/test_offset_map.py"
    said = checked(tmp_path, "pytest", "-v", tests, "-k", "hashed and not take and not dict")
    for name in (
        "test_more_memory_knows_more_keys",
        "test_a_full_map_gives_up_the_upper_half",
        "test_a_hashed_map_is_claimed_by_the_last_of_each_key",
    ):
        assert name in said


@pytest.mark.parametrize("codec", CODECS)
def test_plain_records_are_not_left_to_columns(codec: int) -> None:
    data = batch(RECORDS, attributes=codec) + batch([Record(9, 1, b"z", b"")], attributes=codec)
    for part, sections in record_sections(data, scan(data), PART_BYTES):
        assert keys.read_sections(loops, part, sections, SEED) is not None
    wanted = np.array([True, False, True, True])
    found = thin_by(loops)(data, scan(data), wanted, np.full(2, NO_HORIZON))
    assert found is not None
    assert [(one.base_timestamp, one.max_timestamp, one.count) for one in found] == [
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
    assert thin_by(loops)(data, scan(data), every, np.full(1, NO_HORIZON)) is None


def test_each_loop_is_compiled_once() -> None:
    """Before there is a record, and wherever the first few or many lie then."""
    loops.compile_all()
    tables.compile_all()
    for codec in (NONE, ZSTD):
        data = batch(RECORDS, attributes=codec) + bytes(PADDING)
        some = v2.scan(data, 0, len(data) - PADDING)
        (rows,) = keys.read_keys_by(loops)(data, some, SEED)
        wanted = np.array([True, False, True])
        assert HashedMap(tables, 1 << 20).claim(rows.first[1:], rows.second[1:], wanted[1:])
        found = HashedMap(tables, 1 << 20)
        found.put(rows.first, rows.second, np.arange(len(rows.offsets)))
        assert found.find(rows.first, rows.second).tolist() == [0, 1, 2]
        kept = np.array([True, False, True])
        assert thin_by(loops)(data, some, kept, np.full(1, NO_HORIZON)) is not None
    each: list[Any] = [loops.read_keys, loops.thin]
    each += [tables.put, tables.claim, tables.find, tables.move]
    assert [len(loop.signatures) for loop in each] == [1] * len(each)


@pytest.mark.parametrize(
    "data",
    [
        plain(6, [b"v"]) + wrapper([Record(at, 1) for at in (5, 6, 7)], 1, GZIP),
        wrapper([Record(at, 1) for at in (0, 500, 1000)], 0, GZIP, offset=0) + plain(5, [b"v"]),
    ],
)
def test_what_a_wrapper_holds_is_held_to_what_lies_around_it(data: bytes) -> None:
    for read in (keys.read_keys, keys.read_keys_by(loops)):
        assert keys_of(data, read) == "corrupt"


def test_no_more_is_held_than_columns_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batch([Record(at, 0, b"k", b"v" * 900)]) for at in range(9))
    for most_bytes, is_left in ((9000, False), (8000, True)):
        monkeypatch.setattr(thinned, "MAX_DECODED_BYTES", most_bytes)
        made = thin_by(loops)(data, scan(data), np.ones(9, np.bool_), np.full(9, NO_HORIZON))
        assert (made is None) == is_left


ASKED = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from klog.logformat.compiled import compiling
with warnings.catch_warnings(record=True) as told:
    found = getattr(compiling, sys.argv[2])()
print(found is not None, len(told), *(str(one.message).split(": ", 1)[-1] for one in told))
"""


def asked(path: Path, which: str = "loops", **environment: str) -> str:
    """Ask for loops in a process that imports from a folder or a zip first."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(path), which],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("which", ["loops", "writing_loops", "message_loops"])
def test_a_zip_needs_no_place_to_keep_what_is_compiled(tmp_path: Path, which: str) -> None:
    archive = tmp_path / "klog.zip"
    subprocess.run([sys.executable, ROOT / "tools" / "pyfiles.py", archive], check=True)
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    assert asked(archive, which, **nowhere) == "True 0"


def test_numba_that_cannot_be_used_is_told_and_not_needed(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    said = asked(tmp_path)
    assert said == "False 1 ImportError: Numba needs another NumPy"


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "find_spec", lambda name: None)
    assert compiling.loops.__wrapped__() is None
