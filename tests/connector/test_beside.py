"""Files beside a log that are larger than such files are: unread, and as ones that are missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.connector.log import beside
from klog.connector.log.beside import MOST_INDEX_BYTES, read_beside
from klog.connector.log.raw import RawRoot
from klog.connector.store.local import LocalStore
from tests.connector.logs import read
from tests.corpus import ROOT

KINDS = (
    *("*/*.index", "*/*.timeindex", "*/*.txnindex", "*/*.snapshot", "*/partition.metadata"),
    "*-offset-checkpoint",
)


def told(root: Path) -> list[list[dict[str, Any]]]:
    """Read all there is at both levels, and what begins at a time."""
    options = {"subscribePattern": ".*", "includeHeaders": "true"}
    return [
        read(root, **options, isolationLevel="read_uncommitted"),
        read(root, **options, isolationLevel="read_committed"),
        read(root, **options, startingTimestamp="1700000000000"),
    ]


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(b"12345678")
    assert read_beside(LocalStore(), str(path)) == b"12345678"
    os.truncate(path, MOST_INDEX_BYTES + 1)  # The hole takes no room.
    assert read_beside(LocalStore(), str(path)) is None
    path.unlink()
    assert read_beside(LocalStore(), str(path)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_too_large_is_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Sound files are taken for too large: what they say is not believed."""
    answers = []
    changes: tuple[Callable[[Path], object], ...] = (Path.unlink, pad)
    for change in changes:
        root = tmp_path / change.__name__
        shutil.copytree(ROOT / "transactions" / "log", root)
        changed = list(root.glob(kind))
        assert changed
        for path in changed:
            change(path)
        monkeypatch.setattr(beside, "MOST_INDEX_BYTES", 4096)
        monkeypatch.setattr(beside, "_MAX_BYTES", {})
        answers.append(told(root))
    missing, too_large = answers
    assert all(missing)
    assert too_large == missing


def pad(path: Path) -> None:
    """Make a file too large, by bytes that leave what it says as it is where it has lines."""
    data = path.read_bytes()
    path.write_bytes(data + b"\n" * 4097)


def test_what_a_small_limit_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic's id is not known where the file that has it is not believed."""
    root = RawRoot([str(ROOT / "transactions" / "log")])
    topics = {name.topic for name in root.look().listed}
    assert set(root.look().topic_ids(topics)) == topics
    monkeypatch.setitem(beside._MAX_BYTES, "partition.metadata", 4)
    assert root.look().topic_ids(topics) == {}
