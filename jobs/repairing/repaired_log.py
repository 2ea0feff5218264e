"""A topic's commit log as a repair makes it: its commits in order, and their state.

The rule: a commit that is planned at a lost number is replayed like one that was read, so what
follows it is checked before anything is put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from klog.connector.commit_log.commit import REPAIR, Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.lost_commits import LostCommits
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError


@dataclass(slots=True)
class RepairedLog:
    """A log that is replayed while its lost commits are planned.

    Attributes:
        log: The commit log.
        state: The state after the commits so far; first that of the newest checkpoint.
        lost: The lost commits.
        new_commits: The commits that are planned at lost numbers.
        last_commit: The last commit so far.
        repaired_files: The segments that commits of a repair added.
    """

    log: CommitLog
    state: TopicState
    lost: Sequence[LostCommits]
    new_commits: list[Commit] = field(default_factory=list)
    last_commit: Commit | None = None
    repaired_files: set[str] = field(default_factory=set)
    _commits: dict[int, Commit] = field(default_factory=dict)

    def read_until_lost(self, version: int) -> list[Commit]:
        """Return the commits from a version on, up to the next that is lost.

        Args:
            version: The version of the first commit to return.
        """
        lost_versions = {lost.first_version for lost in self.lost}
        commits: list[Commit] = []
        while (number := version + len(commits)) not in lost_versions:
            commit = self._commits.get(number) or self.log.read(number)
            if commit is None:
                break
            self._commits[number] = commit
            commits.append(commit)
        return commits

    def replay_until_lost(self) -> None:
        """Apply the next commits to the state, up to the next that is lost."""
        self.replay(self.read_until_lost(self.state.version + 1))

    def append(self, commit: Commit) -> None:
        """Plan a commit at a lost number, and apply it to the state.

        Args:
            commit: The commit.
        """
        self.new_commits.append(commit)
        self.replay([commit])

    def replay(self, commits: Sequence[Commit]) -> None:
        """Apply commits to the state.

        Args:
            commits: The commits after the state, in order.

        Raises:
            KlogError: They do not follow from the state.
        """
        try:
            self.state = replay(self.state, commits)
        except KlogError as exc:
            raise KlogError(
                f"{self.log.paths.commits}: {exc}. klog cannot tell what the lost commits did: "
                "restore them from a copy"
            ) from exc
        for commit in commits:
            self.last_commit = commit
            self.note_repair(commit)

    def note_repair(self, commit: Commit) -> None:
        """Remember the segments that a commit added, if a repair put it.

        Args:
            commit: The commit.
        """
        if commit.operation == REPAIR:
            self.repaired_files |= {entry["file"] for entry in commit.actions.add}
