"""`klog dump` of a very large record: the text of the whole value, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pytest

from klog.text_output import json_bytes
from klog.tools import dump_values
from klog.tools.dump_values import CHUNK_BYTES, Base64, column_values, json_chunks, text_chunks
from tests.support.batch_bytes import GZIP, Record, batch
from tests.support.klog_command import Klog
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS
from tests.tools.dumped_files import dump, write_file

MEASURED = """
import sys
from klog.cli import main
from benchmarks.memory import peak_mib
code = main(sys.argv[1:])
sys.stderr.write(f"{code} {int(peak_mib())}")
"""
VALUE_BYTES = 100 << 20
MAX_MIB = 310
"""The process after its imports, about 130 MiB, the value once, and the memory of any dump."""
OFFSET_KEY = bytes.fromhex("00010002673100017400000002")
MEMBER_KEY = bytes.fromhex("000700016700016d")

VALUES = [b"", b"abc", b"\0\n\"\\" * 20, "h\u00e9\u20ac\U0001f600".encode() * 7, b"a\xe2\x82" * 9,
          b"\xff" * 50, b"abcdefghijk\xe2\x82"]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("size", [3, 6, 9])
def test_chunks_join_to_the_whole(value: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_values, "CHUNK_BYTES", size)
    values = {"offset": 1, "key": value, "headerKeys": ["h\u00e9"], "payload": value[:2]}
    values |= {"held": {"version": "7", "data": value}}
    whole = json.dumps(values, ensure_ascii=False, default=json_bytes)
    assert "".join(json_chunks(values)) == whole
    shown = f"a: {value.decode(errors='replace')}{b64encode(value).decode()}"
    assert "".join(text_chunks(["a: ", value, Base64(value)])) == shown
    assert CHUNK_BYTES % 3 == 0


def test_only_large_values_of_a_column_are_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_values, "CHUNK_BYTES", 3)
    column = pa.array([b"left out", b"abcd", None, b"abc", b""], pa.binary())[1:]
    values = column_values(column)
    assert [type(value) for value in values] == [memoryview, type(None), bytes, bytes]
    assert values == [b"abcd", None, b"abc", b""]
    assert column_values(column[1:2]) == [None]


def test_a_large_value_of_an_unknown_version(
    klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_file(tmp_path, batch([Record(0, 1, OFFSET_KEY, b"\0\7" + bytes(50))]))
    flags = (["--offsets-decoder"], ["--offsets-decoder", "--json"])
    expected = [dump(klog, log, flags=tuple(options)).out for options in flags]
    monkeypatch.setattr(dump_values, "CHUNK_BYTES", 9)
    assert [dump(klog, log, flags=tuple(options)).out for options in flags] == expected


@pytest.mark.parametrize(
    ("key", "begin", "flags", "expected"),
    [
        (b"k", b"", ["--print-data-log", "--json"], "0"),
        pytest.param(b"k", b"\xff", ["--print-data-log", "--json"], "0", marks=pytest.mark.full),
        pytest.param(b"k", b"", ["--print-data-log"], "0", marks=pytest.mark.full),
        pytest.param(b"k", b"", ["--deep-iteration"], "0", marks=pytest.mark.full),
        (OFFSET_KEY, b"\0\7", ["--offsets-decoder"], "0"),
        (MEMBER_KEY, b"\0\0\xff", ["--offsets-decoder"], "1"),
    ],
    ids=["json", "base64", "text", "deep", "unknown-version", "damaged"],
)
def test_a_large_value_of_a_small_batch(
    tmp_path: Path, key: bytes, begin: bytes, flags: list[str], expected: str
) -> None:
    record = Record(0, 1, key, begin + bytes(VALUE_BYTES))
    log = write_file(tmp_path, batch([record], attributes=GZIP))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "dump", "--files", str(log), *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True,
        timeout=TIMEOUT_SECONDS, cwd=PROJECT,
    )  # fmt: skip
    *_, code, mib = done.stderr.split()
    assert code == expected
    assert int(mib) < MAX_MIB
