"""Errors of lost commits: what is lost, what shows it, and what to do.

The rule (docs/commit-protocol.md, Lost commits): each error names the file of the commit that is
lost, or of the one that was put in its place, and ends with the next step. The same loss has the
same text, whichever process notices it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.errors import ForkedCommitError, LostCommitError

MAX_NAMED_FILES = 10
"""An error names so many files, and counts the others."""
THIS_PROCESS = "this process, which has loaded it,"
_PUT_BACK = "Copy this file and its segments away, and put the lost commit in its place from a copy"
_GO_ON = "To go on without the lost commit, start this process again"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A version that existed, and what shows it.

    Attributes:
        version: The version.
        source: The path of the file that shows it, or the process that has loaded it.
    """

    version: int
    source: str


@dataclass(frozen=True, slots=True)
class ForkedCommit:
    """A commit file whose write is not the one that the log has at this version.

    `expected_write_id` is the log's, and `source` what shows it. `sidecar_error` says why the
    sidecar, which names the segments, cannot be read.
    """

    path: str
    commit: Commit
    expected_write_id: str
    source: str
    sidecar_error: str = ""

    def __str__(self) -> str:
        """Return the text of what is wrong."""
        commit = self.commit
        return (
            f"commit {commit.version} is write {commit.write_id} ({commit.operation}), and "
            f"{self.source} shows that it was write {self.expected_write_id}: that commit was "
            f"lost, and this one was put in its place. No load reads it. {self._segments()}"
        )

    def _segments(self) -> str:
        if self.sidecar_error:
            return f"Its sidecar, which names its segments, cannot be read: {self.sidecar_error}"
        files = [entry["file"] for entry in self.commit.actions.add]
        if not files:
            return "It has no segments"
        return f"Its segments: {summarize_files(files)}"


def summarize_files(files: Sequence[str], max_named: int = MAX_NAMED_FILES) -> str:
    """Return the first files by name, and how many more there are.

    Args:
        files: The paths.
        max_named: How many are named.
    """
    more = len(files) - max_named
    return ", ".join(files[:max_named]) + (f" and {more:,} more" if more > 0 else "")


def lost_commit_error(paths: TopicPaths, lost_version: int, evidence: Evidence) -> LostCommitError:
    """Return the error of a lost commit.

    Args:
        paths: The paths of the log.
        lost_version: The version of the commit.
        evidence: What shows that it existed.
    """
    text = (
        f"{paths.commit(lost_version)}: this commit is lost: it does not exist, and "
        f"{evidence.source} shows that version {evidence.version} was made. Restore it from a "
        f"copy, or see what `klog repair --topic {paths.topic}` can do"
    )
    # Nothing else may show it, so that a new process would not see the loss.
    return LostCommitError(f"{text}. {_GO_ON}" if evidence.source == THIS_PROCESS else text)


def forked_commit_error(forked: ForkedCommit) -> ForkedCommitError:
    """Return the error of a reader that needs the lost commit.

    Args:
        forked: The commit in its place.
    """
    return ForkedCommitError(
        f"{forked.path}: {forked}. {_PUT_BACK}; `klog verify` names all such commits"
    )


def replaced_commit_error(
    path: str, version: int, write_id: str, known_write_id: str
) -> ForkedCommitError:
    """Return the error of a process whose own state has another write than the log now.

    Args:
        path: The path of the commit.
        version: Its version.
        write_id: Its write id.
        known_write_id: The write id that the process knows.
    """
    return ForkedCommitError(
        f"{path}: commit {version} is write {write_id}, and {THIS_PROCESS} shows that it was write "
        f"{known_write_id}: that commit was lost, and another was put in its place. {_PUT_BACK}. "
        f"{_GO_ON}"
    )
