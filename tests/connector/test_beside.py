"""A file beside a log that is larger than one of its kind can be is as one that is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.connector.log.beside import MOST_INDEX_BYTES
from tests.connector.logs import read
from tests.corpus import ROOT

PER_PARTITION = (
    "*/*.index",
    "*/*.timeindex",
    "*/*.txnindex",
    "*/*.snapshot",
    "*/partition.metadata",
)
PER_DIRECTORY = ("*-offset-checkpoint",)


def enlarge(path: Path) -> None:
    """Make the file one byte too large; the hole takes no room."""
    os.truncate(path, MOST_INDEX_BYTES + 1)


def told(root: Path) -> list[list[dict[str, Any]]]:
    """Read all there is at both levels, and what begins at a time."""
    options = {"subscribePattern": ".*", "includeHeaders": "true"}
    return [
        read(root, **options, isolationLevel="read_uncommitted"),
        read(root, **options, isolationLevel="read_committed"),
        read(root, **options, startingTimestamp="1700000000000"),
    ]


@pytest.mark.parametrize("kind", [*PER_PARTITION, *PER_DIRECTORY])
def test_too_large_is_as_missing(tmp_path: Path, kind: str) -> None:
    answers = []
    changes: tuple[Callable[[Path], None], ...] = (Path.unlink, enlarge)
    for change in changes:
        root = tmp_path / change.__name__
        shutil.copytree(ROOT / "transactions" / "log", root)
        changed = list(root.glob(kind))
        for path in changed:
            change(path)
        assert changed
        answers.append(told(root))
    missing, too_large = answers
    assert all(missing)
    assert too_large == missing
