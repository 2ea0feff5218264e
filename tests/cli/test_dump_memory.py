"""`klog dump` of one very large record: the same text as that of the whole, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from klog.cli import dump_pieces
from klog.cli.dump_pieces import PIECE_BYTES, json_pieces, text_pieces
from klog.cli.formats import json_bytes
from tests.cli.dumping import written
from tests.encode import GZIP, Record, batch

MEASURED = """
import sys
from klog.cli import main
from benchmarks.memory import peak_mib
code = main(sys.argv[1:])
sys.stderr.write(f"{code} {int(peak_mib())}")
"""
VALUE_BYTES = 100 << 20
MOST_MIB = 600
"""The process as imported, about 125 MiB, and four times the value: decoding needs three."""

VALUES = [b"", b"abc", b"\0\n\"\\" * 20, "h\u00e9\u20ac\U0001f600".encode() * 7, b"a\xe2\x82" * 9,
          b"\xff" * 50, b"abcdefghijk\xe2\x82"]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("size", [3, 6, 9])
def test_pieces_are_the_whole(value: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_pieces, "PIECE_BYTES", size)
    values = {"offset": 1, "key": value, "headerKeys": ["h\u00e9"], "payload": value[:2]}
    whole = json.dumps(values, ensure_ascii=False, default=json_bytes)
    assert "".join(json_pieces(values)) == whole
    assert "".join(text_pieces(["a: ", value])) == "a: " + value.decode(errors="replace")
    assert PIECE_BYTES % 3 == 0


@pytest.mark.parametrize(
    "flags", [["--print-data-log", "--json"], ["--print-data-log"], ["--deep-iteration"]]
)
def test_a_large_value_of_a_small_batch(tmp_path: Path, flags: list[str]) -> None:
    log = written(tmp_path, batch([Record(0, 1, b"k", bytes(VALUE_BYTES))], attributes=GZIP))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "dump", "--files", str(log), *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=200, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    code, mib = done.stderr.split()
    assert code == "0"
    assert int(mib) < MOST_MIB
