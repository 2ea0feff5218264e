"""What would make a topic's log whole again, worked out and not written.

The rule (docs/commit-protocol.md, Lost commits): repair never overwrites, renumbers or deletes. A
complete checkpoint at or above lost commits stands for them, so the boundary may rise to it.
Elsewhere commits are put at the lost numbers, and the last one of a range has what `filling.py`
works out. What does not follow, or fits in two ways, is said and not put.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from klog.connector.log.author import NewId
from klog.connector.log.cleaning import whole_checkpoints
from klog.connector.log.commit import REPAIR, Actions, Commit, Topic
from klog.connector.log.entries import Entry
from klog.connector.log.forked_commits import find_forked_commits, forked_commit_error
from klog.connector.log.garbage import files_of
from klog.connector.log.lost_commits import LostCommits, find_lost_commits
from klog.connector.log.paths import CheckpointName
from klog.connector.log.state import State, fold
from klog.connector.log.topic_log import TopicLog
from klog.errors import KlogError
from klog.jobs.repairing.candidates import Candidates, KnownEnds
from klog.jobs.repairing.filling import Choices, fill, shown_ends
from klog.logformat.topic_config import klog_topic_config

NEW_ID = "new"
"""What is given for a topic id that nobody knows any more."""
NEVER_EXPIRES = {"retention.ms": "-1"}
"""The config of a topic whose own is lost: nothing goes until its owner says what may."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to put, in order; `problem` says what cannot be repaired, and then nothing is put.

    `description` is the path of the topic's `topic.json` if it is lost, `checkpoint` the one to
    whose version the boundary rises. `left` are segments that nothing shows to have been committed.
    """

    lost: tuple[LostCommits, ...] = ()
    description: str = ""
    checkpoint: CheckpointName | None = None
    commits: tuple[Commit, ...] = ()
    left: tuple[Entry, ...] = ()
    problem: str = ""

    @property
    def is_needed(self) -> bool:
        """Tell whether something is lost."""
        return bool(self.lost or self.description)


@dataclass(slots=True)
class Planner:
    """Plans the repair of one topic."""

    log: TopicLog
    new_id: NewId
    engine: str
    choices: Choices = field(default_factory=Choices)
    _state: State = field(default_factory=State)
    _ends: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _exact: int = -1
    _made: list[Commit] = field(default_factory=list)
    _left: list[Entry] = field(default_factory=list)
    _is_repaired: bool = False

    def plan(self) -> Plan:
        """Return what to put."""
        lost = tuple(find_lost_commits(self.log))
        description = ""
        try:
            self._state = self.log.newest_checkpoint()
            description = self._lost_description(lost)
            self._check_checkpoint()
            if not lost:
                replace(self.log, is_described=True).load()
                return Plan(description=description)
            checkpoint = self._resting(lost)
            self._ends[self._state.version] = self._state.log_end
            self._exact = self._state.version
            for one in lost:
                if one.last > self._state.version:
                    first = max(one.first, self._state.version + 1)
                    self._fill(first, one.last, lost)
            self._fold(self._read(self._state.version + 1, lost))
        except KlogError as exc:
            return Plan(lost, description, problem=str(exc))
        return Plan(lost, description, checkpoint, tuple(self._made), tuple(self._left))

    def _lost_description(self, lost: Sequence[LostCommits]) -> str:
        """Return the path of `topic.json` if it is lost: it is there before the first commit."""
        if self.log.is_described:
            return ""
        has_commits = lost or self._state.version >= 0 or self.log.read_alone(0) is not None
        return self.log.paths.description if has_commits else ""

    def _resting(self, lost: Iterable[LostCommits]) -> CheckpointName | None:
        """Return the lowest complete checkpoint that stands for all lost commits that one does."""
        names = sorted(name for name, _ in whole_checkpoints(self.log))
        if not names:
            return None
        tops = [min(one.last, names[-1].version) for one in lost if one.first <= names[-1].version]
        return next((name for name in names if tops and name.version >= max(tops)), None)

    def _check_checkpoint(self) -> None:
        """Refuse a checkpoint that does not know a commit: what this one did would be lost."""
        for one in find_forked_commits(self.log, self._state):
            raise one if isinstance(one, KlogError) else forked_commit_error(one)

    def _read(self, version: int, lost: Iterable[LostCommits]) -> list[Commit]:
        """Read the commits from a version on, up to the next that is lost."""
        stops = {one.first for one in lost}
        found: list[Commit] = []
        while (number := version + len(found)) not in stops:
            commit = self.log.read(number)
            if commit is None:
                break
            found.append(commit)
        return found

    def _fold(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            self._state = fold(self._state, [commit])
            self._ends[commit.version] = self._state.log_end
            # After a loss, also a repaired one, the log ends are not those that a writer saw.
            self._is_repaired |= commit.operation == REPAIR
            if not self._is_repaired:
                self._exact = commit.version

    def _fill(self, first: int, last: int, lost: Sequence[LostCommits]) -> None:
        """Plan the commits of one range, and see that the commits after it follow."""
        self._fold(self._read(self._state.version + 1, lost))
        if self._state.version != first - 1:
            raise KlogError(f"commit {self._state.version + 1} cannot be read; run repair again")
        behind = self._read(last + 1, lost)
        if not behind:
            raise KlogError(f"commit {last + 1} cannot be read; run repair again")
        time_ms = self._state.timestamp_ms
        if first == 0:
            time_ms = behind[0].timestamp_ms - (last + 2)
        elif behind[0].timestamp_ms - time_ms <= last - first + 1:
            raise KlogError(
                f"commits {first - 1} and {last + 1} are too close in time for {last - first + 1} "
                "commits between them: restore the lost ones from a copy"
            )
        topic = self._topic_actions(first, behind)
        known = KnownEnds(dict(self._ends), self._exact)
        candidates = Candidates(self.log, self._unreferenced(lost), known)
        filling = fill(candidates, self.choices, self._state.log_end, behind, last)
        self._left += filling.left
        known_id = behind[0].previous_write_id
        for version in range(first, last + 1):
            is_last = version == last
            actions = topic if version == first else Actions()
            commit = Commit(
                version=version,
                write_id=known_id if is_last and known_id else self.new_id(),
                previous_write_id=self._state.last_write_id,
                timestamp_ms=time_ms + version - first + 1,
                operation=REPAIR,
                engine=self.engine,
                actions=replace(actions, add=filling.add, holes=filling.holes)
                if is_last
                else actions,
            )
            self._made.append(commit)
            self._fold([commit])
        self._fold(behind)

    def _topic_actions(self, first: int, behind: Sequence[Commit]) -> Actions:
        """Return what the first lost commit of a range says of the topic itself."""
        makes_anew = behind[0].actions.create_topic is not None
        if self._state.topic_id:
            return Actions(delete_topic=True) if makes_anew else self._more_partitions(behind)
        if first and not _needs_topic(behind):
            return Actions()
        return self._made_topic(behind)

    def _made_topic(self, behind: Iterable[Commit]) -> Actions:
        """Return what makes the topic, as the user knows it."""
        choices = self.choices
        least = max(shown_ends(behind), default=0) + 1
        if not choices.topic_id or choices.partitions < least:
            raise KlogError(
                f"{self.log.paths.directory}: the commit that made the topic is lost, and no "
                "complete checkpoint stands for it. Restore it from a copy, or give --partitions "
                f"(at least {least}) and --topic-id, or --topic-id {NEW_ID} if nobody knows it"
            )
        topic_id = self.new_id() if choices.topic_id == NEW_ID else choices.topic_id
        return Actions(
            create_topic=Topic(topic_id, choices.partitions),
            config=NEVER_EXPIRES | klog_topic_config(choices.config),
        )

    def _more_partitions(self, behind: Iterable[Commit]) -> Actions:
        """Return what gives the topic the partitions that later commits show, if it has fewer."""
        least = max(shown_ends(behind), default=-1) + 1
        if least <= self._state.partitions:
            return Actions()
        if self.choices.partitions < least:
            raise KlogError(
                f"{self.log.paths.directory}: a lost commit gave the topic more partitions than "
                f"{self._state.partitions}. Give --partitions, at least {least}"
            )
        return Actions(partitions=self.choices.partitions)

    def _unreferenced(self, lost: Sequence[LostCommits]) -> set[str]:
        """Return the segments on the store that no commit and no checkpoint added."""
        files = files_of(self.log) - set(self._state.segments["file"].to_pylist())
        files -= set(self._state.removed["file"].to_pylist())
        starts = {one.last + 1 for one in lost if one.last >= self._state.version}
        for start in starts:
            for commit in self._read(start, lost):
                files -= {entry["file"] for entry in commit.actions.add}
        return files


def _needs_topic(commits: Iterable[Commit]) -> bool:
    """Tell whether commits are on a topic that none of them makes; a vacuum needs none."""
    for commit in commits:
        actions = commit.actions
        if actions.create_topic is not None:
            return False
        if actions != Actions(horizon=actions.horizon, forget=actions.forget):
            return True
    return False
