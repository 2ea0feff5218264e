"""A topic, and a directory of files next to its root."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from klog.connector.embedded import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("t", partitions=1)
    return log


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"
