"""A partition or topic that a job left as it was because something of it failed: where, what, why.

The rule: such a failure ends nothing but the work on its own. The others are done, the report is
whole, and the exit code says that something was refused. No password of a URL is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from klog.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    CorruptRecordError,
    KlogError,
    UnsupportedFormatError,
    without_passwords,
)
from klog.jobs.command import DONE, REFUSED
from klog.jobs.printing import labelled


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed, in which file and where in it, as far as that is known; and the next step."""

    what: str
    file: str | None
    position: int | None
    next_step: str

    @staticmethod
    def of(error: KlogError | OSError, topic: str, look: str = "") -> Failure:
        """Tell of an error that a task or a commit of a topic ended with.

        `look` says what tells more, if that is not `verify`.
        """
        look = look or f"`klog verify --topic {topic}` tells all that is wrong with the topic"
        if isinstance(error, CorruptFileError):
            step = f"restore the file from a copy, then run it again; {look}"
            return Failure(
                without_passwords(error.reason), without_passwords(error.path), error.position, step
            )
        if isinstance(error, CorruptRecordError | UnsupportedFormatError):
            return Failure(str(error), None, error.position, look)
        if isinstance(error, CommitStateUnknownError):
            step = f"look for it with `klog history --topic {topic}`; delete nothing"
            return Failure(str(error), None, None, step)
        file = getattr(error, "filename", None)
        step = f"see to what it says, then run it again; {look}"
        named = without_passwords(file) if isinstance(file, str) else None
        return Failure(without_passwords(str(error)), named, None, step)


@dataclass(frozen=True, slots=True)
class FailedTopic:
    """A topic of which nothing was done: its log could not be read."""

    topic: str
    failure: Failure

    def line(self) -> str:
        """Give it as a line of a report."""
        return labelled({"Topic": self.topic, **labels(self.failure)})


class MayFail(Protocol):
    """What is told of a partition or a topic."""

    @property
    def failure(self) -> Failure | None:
        """Give why it was left; None for one that was not, or for no fault."""


def labels(failure: Failure | None) -> dict[str, object]:
    """Give a failure as fields of a partition's line; those of none have no value."""
    if failure is None:
        return {}
    return {
        "Failed": failure.what,
        "File": failure.file,
        "Position": failure.position,
        "Next": failure.next_step,
    }


def exit_code(partitions: Iterable[MayFail]) -> int:
    """Give 1 where anything failed; what another job was faster with is no fault."""
    return REFUSED if count(partitions) else DONE


def count(partitions: Iterable[MayFail]) -> int:
    """Give how many failed."""
    return sum(one.failure is not None for one in partitions)
