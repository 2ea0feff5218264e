"""What a repair of one topic puts.

The rule: a plan is complete before anything is put, and says in order what is put.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.lost_commits import LostCommits


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What to put, in order.

    Attributes:
        lost: The lost commits.
        topic_file: The path of `topic.json`, if it is lost.
        fence: A commit on top of the log that refuses a writer with another state.
        checkpoint: The checkpoint to whose version the last expired version rises.
        commits: The commits that are put at the lost numbers.
        not_added: Segments of a lost commit, maybe, that are not added.
        above_last_commit: By file the version above the log that it shows.
        missing: Segments that the topic has and the store has not.
        problem: Why the topic cannot be repaired. A plan with one is not put; a put that failed
            sets it too.
    """

    lost: tuple[LostCommits, ...] = ()
    topic_file: str = ""
    fence: Commit | None = None
    checkpoint: CheckpointName | None = None
    commits: tuple[Commit, ...] = ()
    not_added: tuple[str, ...] = ()
    above_last_commit: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_needed(self) -> bool:
        """Return whether anything is lost."""
        return bool(self.lost or self.topic_file)
