"""The topic that a history leads to, computed without klog's own replay.

The rule: the first file created for each version counts. An append gives the next offsets to its
records for good. Which offsets are alive is a list of ranges for each version: an append adds one,
and a restore takes the list and the log starts of the version that it restores, never its ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from klog.connector.commit_log import commit as commits
from klog.connector.commit_log.commit import Topic, UndeletedTopic
from tests.simulation.admins import COUNTER
from tests.simulation.cast import Batch, Cast, Position, Record
from tests.simulation.world import ViolationError


@dataclass
class Shape:
    """The offsets of a topic that are alive: ranges and the log start, by partition."""

    topic_id: str = ""
    ranges: dict[int, list[range]] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Shape:
        """Return the same shape, to be changed."""
        ranges = {partition: list(values) for partition, values in self.ranges.items()}
        return Shape(self.topic_id, ranges, dict(self.starts))

    def alive(self, partition: int) -> set[int]:
        """Return the offsets of a partition that have or had a record that nobody took back."""
        start = self.starts.get(partition, 0)
        return {
            offset
            for values in self.ranges.get(partition, ())
            for offset in values
            if offset >= start
        }


@dataclass
class ExpectedTopic:
    """A topic by its history: the record at each position, what is alive, the batches in order."""

    cast: Cast
    records: dict[Position, Record] = field(default_factory=dict)
    batches: list[tuple[str, Batch]] = field(default_factory=list)
    """With the id of the topic: a re-created topic does not know its predecessor's batches."""
    shape: Shape = field(default_factory=Shape)
    _topic: Topic = field(default_factory=lambda: Topic("", 0))
    _ends: Counter[int] = field(default_factory=Counter)
    _config: int = 0
    _deletion: int = -1
    """The commit that deleted the topic last."""
    _removed: set[str] = field(default_factory=set)
    _shapes: list[Shape] = field(default_factory=list)

    def apply(self, commit: commits.Commit) -> None:
        """Apply the next commit."""
        actions = commit.actions
        self._set_topic(commit)
        if actions.restore is not None:
            self._restore(commit, self._shapes[actions.restore.version])
        for entry in actions.add:
            _check_added(self.cast, commit, entry["file"], self._topic, self._removed)
            if commit.operation == "append":
                self._append(entry["file"], entry["partition"])
        self._removed.update(actions.remove)
        for partition, start in actions.log_start.items():
            starts = self.shape.starts
            starts[partition] = max(starts.get(partition, 0), start)
        if commit.operation == "append":
            self.batches += {
                (self._topic.topic_id, self.cast.batches[entry["file"]]) for entry in actions.add
            }
        self._shapes.append(self.shape.copy())

    def _set_topic(self, commit: commits.Commit) -> None:
        actions = commit.actions
        if actions.create_topic is not None:
            self._topic, self._ends, self._config = actions.create_topic, Counter(), 0
        if actions.create_topic is not None or actions.delete_topic:
            self.shape = Shape("" if actions.delete_topic else self._topic.topic_id)
        if actions.delete_topic:
            self._deletion = commit.version
        if actions.undelete is not None:
            self._undelete(commit, actions.undelete)
        if actions.partitions is not None:
            self._topic = Topic(self._topic.topic_id, actions.partitions)
        if COUNTER in actions.config:
            self._config += 1
            if actions.config[COUNTER] != str(self._config):
                raise ViolationError(f"commit {commit.version}: a change of config was lost")

    def _undelete(self, commit: commits.Commit, undelete: UndeletedTopic) -> None:
        """Take the shape of the version, which must be the one before the last deletion.

        The ends and the config are still those of the topic that was deleted last.
        """
        self.shape = self._shapes[undelete.version].copy()
        is_deleted = not self._shapes[-1].topic_id
        if not is_deleted or undelete.version != self._deletion - 1:
            raise ViolationError(
                f"commit {commit.version} brought back version {undelete.version}, and the last "
                f"deletion is commit {self._deletion}"
            )
        if undelete.topic != self._topic:
            raise ViolationError(f"commit {commit.version} brought back {undelete.topic}")

    def _append(self, file: str, partition: int) -> None:
        start = self._ends[partition]
        for record in self.cast.records[file]:
            assert record is not None
            self.records[self._topic.topic_id, partition, self._ends[partition]] = record
            self._ends[partition] += 1
        ranges = self.shape.ranges.setdefault(partition, [])
        ranges.append(range(start, self._ends[partition]))

    def _restore(self, commit: commits.Commit, shape: Shape) -> None:
        """Take the shape of the version; its segments that were removed may be added again."""
        if shape.topic_id != self.shape.topic_id:
            raise ViolationError(f"commit {commit.version} restored another topic")
        self.shape = shape.copy()
        files = {entry["file"] for entry in commit.actions.add}
        if never := files - self._removed:
            raise ViolationError(f"commit {commit.version} restored {never}, never removed")
        self._removed -= files


def expected_topic(cast: Cast, past: Sequence[commits.Commit]) -> ExpectedTopic:
    """Compute the record at every offset, and which offsets are alive."""
    expected = ExpectedTopic(cast)
    for commit in past:
        expected.apply(commit)
    return expected


def _check_added(
    cast: Cast, commit: commits.Commit, file: str, topic: Topic, removed: set[str]
) -> None:
    if file in removed:
        raise ViolationError(f"{file} was removed and added again")
    topic_id, partitions = cast.written_for[file]
    if topic_id != topic.topic_id:
        raise ViolationError(f"{file} was written for topic {topic_id}, and is in {topic.topic_id}")
    if commit.operation == "append" and partitions != topic.partitions:
        raise ViolationError(
            f"{file} was written for {partitions} of {topic.partitions} partitions"
        )
