"""Commands of `klog` that run jobs, as tasks of the processes of these tests.

The rule: a process gets its task by name, and the path of its log is the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from klog.cli import main
from klog.connector.commit_log import background_checkpointer, checkpoint_schedule
from klog.connector.commit_log.commit_log import CommitLog
from klog.jobs.shared.marking import compiled_kernels
from tests.support.kernel_choices import CLEANING_FROM_THE_START


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its arguments, and the number of commits of its topic afterwards.

    `unchanged`: readers see no difference at all. `compiled`: loops compiled by numba process the
    records, however few there are.
    """

    name: str
    arguments: tuple[str, ...] = ()
    commits: int = 0
    unchanged: bool = False
    compiled: bool = False

    @property
    def is_import(self) -> bool:
        """Whether the verb makes a klog root of a broker's directory."""
        return self.name in ("adopt", "import-log")


def run_verb(log: CommitLog, verb: Verb) -> None:
    """Run the verb, and wait for the checkpoint that its last commit triggers."""
    root = log.paths.root
    arguments = [argument.format(source=source_of(root)) for argument in verb.arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            checkpoint_schedule, "MIN_COMMITS", verb.commits or checkpoint_schedule.MIN_COMMITS
        )
        if verb.compiled:
            patch.setattr(compiled_kernels, "CLEANING", CLEANING_FROM_THE_START)
        assert main([verb.name, "--root", root, *arguments]) == 0
        background_checkpointer.CHECKPOINTER.join()


def source_of(root: str | Path) -> Path:
    """Return the broker's directory that is imported."""
    return Path(root).parent / "source"
