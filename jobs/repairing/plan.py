"""What a repair of one topic puts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.log.commit import Commit
from klog.connector.log.lost_commits import LostCommits
from klog.connector.log.paths import CheckpointName


@dataclass(frozen=True, slots=True)
class Plan:
    """What to put, in order; `problem` says what cannot be repaired, and then nothing is put.

    `description` is the path of the topic's `topic.json` if it is lost. `fence` is a commit on top
    of the log, which refuses a writer whose state differs; `checkpoint` is the one to whose version
    the boundary rises; `commits` fill the lost numbers. `left` are segments that are not added, and
    `gone` those that the topic has and the store has not. `above` has by file the version above the
    log that it shows.
    """

    lost: tuple[LostCommits, ...] = ()
    description: str = ""
    fence: Commit | None = None
    checkpoint: CheckpointName | None = None
    commits: tuple[Commit, ...] = ()
    left: tuple[str, ...] = ()
    above: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_needed(self) -> bool:
        """Return whether something is lost."""
        return bool(self.lost or self.description)
