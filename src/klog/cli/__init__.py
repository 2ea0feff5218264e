"""The command `klog`. It loads its modules after it has taken over SIGINT.

The rule: what verbs share with Kafka's tools, such as `--root` and standard input, is in
`klog.tools`, the layer below. Jobs are verbs too: their options are in `klog.jobs`.
"""

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
