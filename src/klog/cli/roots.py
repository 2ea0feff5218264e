"""The roots of a command: what `--root` named, opened once."""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.source.scan import log_directories


def directories(roots: Iterable[str]) -> list[str]:
    """Give the log directories of all `--root`, split at commas by the rule that `load` has."""
    return [path for root in roots for path in log_directories({"path": root})]
