"""The command `klog`. It loads its modules after it has taken over SIGINT.

The rule: what verbs share with Kafka's tools, such as `--root` and standard input, is in
`klog.tools`, the layer below. Jobs are verbs too: their options are in `klog.jobs.commands`. A verb
imports what it needs when it runs (`klog.cli.command_line`).
"""

from __future__ import annotations

import sys

from klog.interrupt_exit import end_on_sigint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises `SystemExit` (2) for wrong usage.

    Args:
        arguments: The command line; None for that of the process, which runs nothing else.
    """
    if arguments is None:
        end_on_sigint()
        sys.meta_path.insert(0, _WithoutPandas)
    from klog.interrupts import ending_at_once

    with ending_at_once():
        from klog.cli.command_line import run
    return run(arguments)


class _WithoutPandas:
    """Makes `import pandas` fail as if it were not installed, which pyarrow takes well.

    pyarrow imports pandas with the first value that it converts. That takes longer than all that a
    command needs, and no command uses pandas.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise `ModuleNotFoundError` for pandas; leave other modules to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError(f"klog's command line does not use {name}", name=name)
