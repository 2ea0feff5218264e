"""Companion files of a log that are too large: they are not read, and count as missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.connector.kafka_dir import companion_files
from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import MAX_INDEX_BYTES
from tests.connector.log_dirs import read
from tests.corpus import ROOT

KINDS = (
    *("*/*.index", "*/*.timeindex", "*/*.txnindex", "*/*.snapshot", "*/partition.metadata"),
    "*-offset-checkpoint",
)


def read_in_three_ways(root: Path) -> list[list[dict[str, Any]]]:
    """Read all records at both levels, and those from a time on."""
    options = {"subscribePattern": ".*", "includeHeaders": "true"}
    return [
        read(root, **options, isolationLevel="read_uncommitted"),
        read(root, **options, isolationLevel="read_committed"),
        read(root, **options, startingTimestamp="1700000000000"),
    ]


def test_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(b"12345678")
    assert read_companion_file(LocalStore(), str(path)) == b"12345678"
    os.truncate(path, MAX_INDEX_BYTES + 1)  # The hole takes no room.
    assert read_companion_file(LocalStore(), str(path)) is None
    path.unlink()
    assert read_companion_file(LocalStore(), str(path)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_file_that_is_too_large_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nothing that a file says is believed if it is too large, sound as it may be."""
    answers = []
    changes: tuple[Callable[[Path], object], ...] = (Path.unlink, pad)
    for change in changes:
        root = tmp_path / change.__name__
        shutil.copytree(ROOT / "transactions" / "log", root)
        changed = list(root.glob(kind))
        assert changed
        for path in changed:
            change(path)
        monkeypatch.setattr(companion_files, "MAX_INDEX_BYTES", 4096)
        monkeypatch.setattr(companion_files, "_MAX_BYTES", {})
        answers.append(read_in_three_ways(root))
    missing, too_large = answers
    assert all(missing)
    assert too_large == missing


def pad(path: Path) -> None:
    """Make a file too large by empty lines, which change nothing in a file of lines."""
    data = path.read_bytes()
    path.write_bytes(data + b"\n" * 4097)


def test_topic_id_of_a_file_that_is_too_large_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = RawRoot([str(ROOT / "transactions" / "log")])
    topics = {name.topic for name in root.snapshot().listed_partitions}
    assert set(root.snapshot().topic_ids(topics)) == topics
    monkeypatch.setitem(companion_files._MAX_BYTES, "partition.metadata", 4)
    assert root.snapshot().topic_ids(topics) == {}
