"""A topic with two partitions, and the directory of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from klog.connector.embedded import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("orders", partitions=2)
    return log


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "files" / "orders"
