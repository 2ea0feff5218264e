"""`klog dump`: which files it takes, on any store, and what it says of those it cannot."""

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
    written,
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


@pytest.mark.parametrize(("url", "told"), STRANGE_URLS, ids=[url[:12] for url, _ in STRANGE_URLS])
def test_a_url_that_cannot_be_read_is_told(klog: Klog, tmp_path: Path, url: str, told: str) -> None:
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    said = klog("dump", "--files", url.format(tmp_path))
    assert said.code == 1
    assert said.err.startswith("Cannot read in ")
    assert told in said.err


def test_a_long_number_is_no_offset_of_a_log(klog: Klog) -> None:
    fsspec.filesystem("memory").pipe_file(f"/{'9' * 5000}.log", LOG)
    said = klog("dump", "--files", f"memory://{'9' * 5000}.log")
    assert said.code == 0
    assert b"Log starting offset" not in said.out


def test_files_of_another_store(klog: Klog) -> None:
    system = fsspec.filesystem("memory")
    system.pipe_file(f"/dumped/{NAME}.log", LOG)
    system.pipe_file(f"/dumped/{NAME}.index", struct.pack(">ii", 1, SECOND))
    said = klog("dump", "--files", f"memory://dumped/{NAME}.log,memory://dumped/{NAME}.index")
    assert said.code == 1
    assert "Index offset: 1, log offset: 2" in said.err
    assert said.out.decode().count("baseOffset:") == 3


@pytest.mark.parametrize("ending", ["deleted", "swap", "cleaned"])
def test_files_on_their_way(klog: Klog, tmp_path: Path, ending: str) -> None:
    log = written(tmp_path, LOG, f"log.{ending}")
    index = written(tmp_path, struct.pack(">ii", 2, SECOND), f"index.{ending}")
    said = dump(klog, log, index)
    assert (said.code, said.err) == (0, "")
    assert said.out.decode().endswith("offset: 2 position: 70\n")
