"""Verbs of `klog` that run jobs, as what a process of these tests does.

The rule: a process takes its task by name, and the path of the log that it gets is the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from klog.cli import main
from klog.connector import compiled_kernels
from klog.connector.commit_log import background_checkpointer, checkpoint_schedule
from klog.connector.commit_log.commit_log import CommitLog
from tests.support.kernel_choices import CLEANING_FROM_THE_START


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its arguments, and the commits that its topic has when it is done.

    `unchanged` tells that readers see no difference at all, `compiled` that records go by loops
    that numba compiled, however few they are.
    """

    name: str
    arguments: tuple[str, ...] = ()
    commits: int = 0
    unchanged: bool = False
    compiled: bool = False

    @property
    def takes_in(self) -> bool:
        """Tell whether it makes a klog root of a broker's directory."""
        return self.name in ("adopt", "import-log")


def run_verb(log: CommitLog, verb: Verb) -> None:
    """Be the verb's process: its last commit makes a checkpoint due, which it waits for."""
    root = log.paths.root
    arguments = [one.format(source=source_of(root)) for one in verb.arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            checkpoint_schedule, "MIN_COMMITS", verb.commits or checkpoint_schedule.MIN_COMMITS
        )
        if verb.compiled:
            patch.setattr(compiled_kernels, "CLEANING", CLEANING_FROM_THE_START)
        assert main([verb.name, "--root", root, *arguments]) == 0
        background_checkpointer.CHECKPOINTER.join()


def source_of(root: str | Path) -> Path:
    """Say where the broker's directory lies that is imported."""
    return Path(root).parent / "source"
