"""`klog dump`: file names on any store, and the errors for files it cannot read."""

from __future__ import annotations

import struct
from pathlib import Path

import fsspec
import pytest

from tests.support.klog_command import Klog
from tests.tools.dumped_files import (
    LOG,
    NAME,
    SECOND,
    dump,
    write_file,
)

STRANGE_URLS = [
    (f"zip://{NAME}.log::{{}}/bad.zip", "cannot read zip:// here: BadZipFile"),
    ("reference://x.log", "cannot read reference:// here"),
    ("dir://x.log", "cannot"),
    ("generic://x.log", "cannot"),
    ("generic://", "cannot"),
    (f"memory://{'9' * 5000}.index", "is not an offset"),
    (f"memory://{'9' * 5000}.log", "there is no such file"),
]


@pytest.mark.parametrize(
    ("url", "expected"), STRANGE_URLS, ids=[url[:12] for url, _ in STRANGE_URLS]
)
def test_an_unreadable_url_is_reported(klog: Klog, tmp_path: Path, url: str, expected: str) -> None:
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    result = klog("dump", "--files", url.format(tmp_path))
    assert result.code == 1
    assert result.err.startswith("Cannot read in ")
    assert expected in result.err


def test_a_long_number_is_not_the_offset_of_a_log(klog: Klog) -> None:
    fsspec.filesystem("memory").pipe_file(f"/{'9' * 5000}.log", LOG)
    result = klog("dump", "--files", f"memory://{'9' * 5000}.log")
    assert result.code == 0
    assert b"Log starting offset" not in result.out


def test_files_of_another_store(klog: Klog) -> None:
    system = fsspec.filesystem("memory")
    system.pipe_file(f"/dumped/{NAME}.log", LOG)
    system.pipe_file(f"/dumped/{NAME}.index", struct.pack(">ii", 1, SECOND))
    result = klog("dump", "--files", f"memory://dumped/{NAME}.log,memory://dumped/{NAME}.index")
    assert result.code == 1
    assert "Index offset: 1, log offset: 2" in result.err
    assert result.out.decode().count("baseOffset:") == 3


@pytest.mark.parametrize("ending", ["deleted", "swap", "cleaned"])
def test_renamed_files(klog: Klog, tmp_path: Path, ending: str) -> None:
    log = write_file(tmp_path, LOG, f"log.{ending}")
    index = write_file(tmp_path, struct.pack(">ii", 2, SECOND), f"index.{ending}")
    result = dump(klog, log, index)
    assert (result.code, result.err) == (0, "")
    assert result.out.decode().endswith("offset: 2 position: 70\n")
