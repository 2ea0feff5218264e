"""The command `klog`. It loads its modules after it has taken over SIGINT."""

from __future__ import annotations

from collections.abc import Sequence

from klog.interrupts import INTERRUPTED, ending_at_once


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises `SystemExit` (2) for wrong usage."""
    try:
        with ending_at_once():
            from klog.cli.command_line import run
        return run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
