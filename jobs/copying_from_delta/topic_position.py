"""Which version of a Delta table a topic is at, as the topic's own commit log says.

The rule: a version of the table is one transaction of the topic, named by the table's id and
numbered by the version, so the topic's last transaction of that name is the position. Nothing else
is kept, and it goes with the topic when that is deleted.

The first copy of a snapshot has to agree with one that runs at the same time: two snapshots, of two
versions, would be two transactions. So the version is *fixed* first, in a commit without records
under a name of its own, and the first one to fix it wins. A fixed version after the position is a
snapshot that is not complete yet, and the next run completes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from klog.connector.commit_log import append_commit
from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_info import CommitInfo, NewId, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.write_options import WriteOptions
from klog.errors import DataLossError, OptionError

_PREFIX = "delta:"
_SNAPSHOT = ":snapshot"
_NO_QUERY = ""
"""The query id of batch writes."""


def transactional_id(table_id: str) -> str:
    """Return the name under which the versions of a table are written.

    Args:
        table_id: The id of the table, as Delta's metadata have it.
    """
    return f"{_PREFIX}{table_id}"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a topic is in a table.

    Attributes:
        version: The last version that is complete in the topic; None if none is.
        snapshot_version: The version of a snapshot that is not complete yet; None if there is none.
        other_tables: The ids of other tables that the topic has versions of.
        topic_id: The id of the topic, which one that is created again does not have; empty if there
            is no topic.
    """

    version: int | None = None
    snapshot_version: int | None = None
    other_tables: tuple[str, ...] = ()
    topic_id: str = field(default="", compare=False)

    @property
    def has_earlier_rows(self) -> bool:
        """Return whether a snapshot starts a copy again, after rows that may be gone now."""
        return self.version is not None or bool(self.other_tables)

    @property
    def is_new(self) -> bool:
        """Return whether no copy of the table has begun."""
        return self.version is None and self.snapshot_version is None

    def is_before(self, version: int) -> bool:
        """Return whether a version is still to be written.

        Args:
            version: The version.
        """
        return self.version is None or self.version < version


def position_of(state: TopicState, table_id: str) -> Position:
    """Return where a topic is in a table.

    Args:
        state: The state of the topic's log.
        table_id: The id of the table.
    """
    name = transactional_id(table_id)
    versions = {
        writer: transaction.batch_id for writer, transaction in state.writer_transactions.items()
    }
    version, fixed = versions.get(name), versions.get(name + _SNAPSHOT)
    is_pending = fixed is not None and (version is None or version < fixed)
    own = (name, name + _SNAPSHOT)
    other_tables = {
        writer.removeprefix(_PREFIX).removesuffix(_SNAPSHOT)
        for writer in versions
        if writer.startswith(_PREFIX) and writer not in own
    }
    pending = fixed if is_pending else None
    return Position(version, pending, tuple(sorted(other_tables)), state.topic_id)


def check_same_topic(topic: str, topic_id: str, now: str) -> None:
    """Refuse a topic that is another one than at the beginning of a round.

    Args:
        topic: The name of the topic.
        topic_id: Its id then.
        now: Its id now; empty if there is no topic.

    Raises:
        DataLossError: It is another one. A repetition would go on after versions that it lacks.
    """
    if now != topic_id:
        raise DataLossError(
            f"topic {topic} was deleted or created again while the table was copied. Run the job "
            "again: it starts from the beginning. If the topic has a version of the table by now, "
            "delete the topic before, or run the job once with --restart-at snapshot"
        )


class TopicPosition:
    """The position of one topic in one table."""

    def __init__(self, options: WriteOptions, table_id: str, new_id: NewId = random_uuid) -> None:
        """Take the options of the writes, which name root and topic, and the id of the table."""
        assert options.topic is not None
        self._options, self._topic, self.table_id = options, options.topic, table_id
        self._new_id = new_id

    def load(self) -> Position:
        """Return the position now."""
        root = find_root(self._options.path, self._options.storage)
        if root is None:
            return Position()
        return position_of(root.log_to_read(self._topic).load(), self.table_id)

    def fix_snapshot(self, version: int, seen: Position) -> Position:
        """Fix the version of a snapshot, unless another run was first.

        Args:
            version: The version.
            seen: The position that the decision is made from.

        Returns:
            The position after it.

        Raises:
            CommitConflictError: The topic is not that of the position any more.
        """
        return self._write(_SNAPSHOT, version, seen)

    def advance(self, version: int, seen: Position) -> Position:
        """Set the position to a version without records, unless another run has moved it.

        Args:
            version: The version.
            seen: The position that the decision is made from.

        Returns:
            The position after it.

        Raises:
            CommitConflictError: The topic is not that of the position any more.
        """
        return self._write("", version, seen)

    def ensure_dead_letter_topic(self) -> None:
        """Create the topic of rejected rows, if writes may create topics and there is none."""
        options = self._options
        if options.dead_letter_topic is None or not options.create_topic:
            return
        root = find_root(options.path, options.storage)
        if root is not None:
            TopicAdmin(root).ensure(options.dead_letter_topic, options.num_partitions)

    def _write(self, suffix: str, version: int, seen: Position) -> Position:
        log, state = self._load_or_create(seen.topic_id)
        topic_id = state.topic_id
        write_id = self._new_id()
        name = transactional_id(self.table_id) + suffix
        writer = Writer(name, version, _NO_QUERY, write_id)

        def build(state: TopicState) -> Actions | None:
            if state.topic_id != topic_id or position_of(state, self.table_id) != seen:
                return None
            staged = StagedSegments(topic_id, state.version, [])
            return append_commit.append(staged, writer)(state)

        state = log.commit(state, build, CommitInfo(write_id, "append", this_engine("Spark")))
        CHECKPOINTER.offer(log, state)
        return position_of(state, self.table_id)

    def _load_or_create(self, topic_id: str) -> tuple[CommitLog, TopicState]:
        """Return the log of the topic with an id; without an id it is created if it is missing."""
        options = self._options
        root = find_root(options.path, options.storage)
        log = None if root is None else root.log_to_write(self._topic)
        state = TopicState() if log is None else log.load()
        if topic_id:
            check_same_topic(self._topic, topic_id, state.topic_id)
        if log is not None and state.topic_id:
            return log, state
        if not options.create_topic:
            raise OptionError(
                f"there is no topic {self._topic} in {options.path}, and createTopic=false; create "
                "it with klog topics create"
            )
        root = root or find_or_create_root(options.path, self._new_id(), options.storage)
        ensured = TopicAdmin(root).ensure(self._topic, options.num_partitions)
        return root.log_to_write(self._topic), ensured.state
