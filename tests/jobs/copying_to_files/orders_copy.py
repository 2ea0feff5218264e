"""A copy of the topic of a test, and what both kinds of readers see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klog.connector.embedded import Log
from klog.jobs import to_files
from klog.jobs.copying_to_files.files_report import ToFilesReport
from tests.jobs.file_rows import (
    directory_rows,
    log_rows,
    manifest_rows,
)


def run(to: Path, **arguments: Any) -> ToFilesReport:
    root = str(to.parents[1] / "root")
    return to_files.run(None, root, to.name, str(to.parent), **arguments)


def check(to: Path, log: Log) -> None:
    """Check that both kinds of readers see what the topic has."""
    expected = log_rows(to.parents[1] / "root", to.name)
    assert directory_rows(to) == expected
    assert manifest_rows(to) == expected
