"""Why a job left a partition or a topic as it was: what failed, in which file, and what to do.

The rule: a failure ends only the work on its own partition or topic. The job does the others, its
report lists all, and its exit code is 1. A failure shows no password of a URL.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    CorruptRecordError,
    KlogError,
    UnsupportedFormatError,
)
from klog.text_output import labelled
from klog.url_secrets import without_passwords


def discarding_step(topic: str, last_version: int) -> str:
    """Return how to go on without the last commits of a topic.

    Args:
        topic: The topic.
        last_version: The version of the last commit that is left, -1 if none is.
    """
    create = f"`klog topics create --topic {topic}`, then " if last_version < 0 else ""
    return (
        f"run {create}`klog vacuum --topic {topic} --discard-lost --execute`. The files are named "
        "until the log has passed the version that they show"
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed, where, and what to do.

    Attributes:
        reason: What failed.
        file: The path of the file; None if it is not known.
        position: The position in the file, in bytes; None if it is not known.
        next_step: What to do.
    """

    reason: str
    file: str | None
    position: int | None
    next_step: str

    @staticmethod
    def of(error: KlogError | OSError, topic: str, diagnosis: str = "") -> Failure:
        """Return the failure for an error of a task or a commit.

        Args:
            error: What the task or the commit raised.
            topic: The topic.
            diagnosis: The step that shows more; by default `klog verify` of the topic.
        """
        diagnosis = (
            diagnosis or f"`klog verify --topic {topic}` shows all that is wrong with the topic"
        )
        if isinstance(error, CorruptFileError):
            step = f"restore the file from a copy, then run it again; {diagnosis}"
            return Failure(
                without_passwords(error.reason), without_passwords(error.path), error.position, step
            )
        if isinstance(error, CorruptRecordError | UnsupportedFormatError):
            return Failure(str(error), None, error.position, diagnosis)
        if isinstance(error, CommitStateUnknownError):
            step = f"look for it with `klog history --topic {topic}`; delete nothing"
            return Failure(str(error), None, None, step)
        filename = getattr(error, "filename", None)
        file = without_passwords(filename) if isinstance(filename, str) else None
        step = f"fix what it names, then run it again; {diagnosis}"
        return Failure(without_passwords(str(error)), file, None, step)

    def as_json(self) -> dict[str, object]:
        """Return the failure for machines."""
        return {
            "what": self.reason,
            "file": self.file,
            "position": self.position,
            "nextStep": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class FailedTopic:
    """A topic that the job did not work on, because its commit log cannot be read.

    Attributes:
        topic: The topic.
        failure: Why it cannot be read.
    """

    topic: str
    failure: Failure

    def line(self) -> str:
        """Return the topic's line of a report."""
        return labelled({"Topic": self.topic, **failure_labels(self.failure)})

    def as_json(self) -> dict[str, object]:
        """Return the topic for machines."""
        return {"topic": self.topic, "failure": self.failure.as_json()}


def failure_labels(failure: Failure | None) -> dict[str, object]:
    """Return a failure as fields of its partition's line; no field if nothing failed.

    Args:
        failure: The failure; None if nothing failed.
    """
    if failure is None:
        return {}
    return {
        "Failed": failure.reason,
        "File": failure.file,
        "Position": failure.position,
        "Next": failure.next_step,
    }
