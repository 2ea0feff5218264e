"""`klog to-delta` as a process that a test kills, and what can be seen of a table from outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.delta.verb_process import VerbProcess


class CopyProcess(VerbProcess):
    """A run of to-delta."""

    def __init__(self, folder: Path, arguments: Sequence[str], **settings: str) -> None:
        """Start it."""
        super().__init__("to-delta", folder, arguments, settings)


def commits(table: Path) -> int:
    """Return how many commits a table has."""
    return len(list(table.glob("_delta_log/*.json")))


def data_files(table: Path) -> int:
    """Return how many data files lie in the folder of a table, committed or not."""
    return len(list(table.glob("*.parquet")))
