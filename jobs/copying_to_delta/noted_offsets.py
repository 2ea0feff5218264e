"""Where a table is in its topics, by the notes of its commits.

The rule: the history is read from its newest commit back. The last note of a topic counts. After a
RESTORE it goes on at the version that was restored, so a restored table is where it was then. A
commit that replaced the rows of the table ends the search: what was there before says nothing. So
does a clone, whose rows are another table's. What no note says, the rows do (`row_offsets.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import KlogError
from klog.jobs.copying_to_delta.commit_note import CommitNote, parse_commit_note
from klog.jobs.shared.delta.delta_target import TableCommit

_RESTORE = "RESTORE"
_NOTED = frozenset({"WRITE", "MERGE", "CREATE TABLE AS SELECT"})
"""Operations of a copy. Another one may have the note of a session that a MERGE has used."""
_WITHOUT_ROWS = frozenset(
    {"CREATE TABLE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD COLUMNS", "CHANGE COLUMN"}
    | {"OPTIMIZE", "VACUUM START", "VACUUM END", "DELETE", "CLUSTER BY", "UPGRADE PROTOCOL"}
)
"""Operations that add no rows that the table did not have."""
_REPLACING = ("CLONE", "REPLACE TABLE", "CREATE OR REPLACE TABLE")
"""Beginnings of the names of operations after which a table has other rows."""


@dataclass(frozen=True, slots=True)
class NotedOffsets:
    """What the notes say.

    Attributes:
        topics: By topic, where the table is in it.
        lower_bounds: The same for topics in which the table may be further on, as the log does not
            go back to the version on which the note was planned.
        mode: How the newest batch was copied, `append` or `upsert`; empty if no note says it.
        noted_ms: When the newest note was made, in ms; None if there is no note.
        are_all_rows_noted: Whether the table has had no rows but those of commits with notes. So it
            has none of a topic that no note has.
    """

    topics: Mapping[str, StreamOffsets]
    lower_bounds: Mapping[str, StreamOffsets] = field(default_factory=dict)
    mode: str = ""
    are_all_rows_noted: bool = False
    noted_ms: int | None = None


@dataclass(slots=True)
class _Search:
    """What the commits that were read so far have said."""

    table: str
    table_id: str
    topics: dict[str, StreamOffsets] = field(default_factory=dict)
    oldest_plans: dict[str, tuple[int, CommitNote]] = field(default_factory=dict)
    """By topic its last note that was read, and the version of its commit."""
    carried: CommitNote | None = None
    """The newest note, for the topics that it has not copied."""
    noted_ms: int | None = None
    earliest_plan: tuple[int, CommitNote] | None = None
    """Of the notes, the one that was planned first, and the version of its commit."""
    has_other_rows: bool = False
    restored_version: int | None = None
    """What a RESTORE has restored: the versions between are not part of what the table has."""

    def add(self, commit: TableCommit) -> None:
        """Take the note of a commit, if it has one."""
        note = None
        if commit.operation in _NOTED:
            note = parse_commit_note(commit.user_metadata, self.table, commit.version)
        if note is None:
            self.has_other_rows |= commit.operation not in _WITHOUT_ROWS
            return
        if note.table_id != self.table_id:
            raise KlogError(
                f"table {self.table}: version {commit.version} has rows of topic {note.topic} that "
                "to-delta has planned for another table of this name, which was deleted or "
                f"replaced meanwhile. {_way_back(commit.version)}"
            )
        self._check_overlap(note, commit.version)
        if self.earliest_plan is None or note.base_version < self.earliest_plan[1].base_version:
            self.earliest_plan = (commit.version, note)
        self.topics.setdefault(note.topic, note.topics[note.topic])
        if self.carried is None:
            self.carried, self.noted_ms = note, commit.timestamp_ms

    def follow_restore(self, commit: TableCommit) -> bool:
        """Go on at the version that a RESTORE has restored; return whether it says which."""
        self.check_misplaced(commit)
        version = commit.parameters.get("version")
        if version is None:
            return False
        self.restored_version = int(version)
        return True

    def is_complete_at(self, version: int) -> bool:
        """Return whether no commit at or before a version can say more."""
        return self.earliest_plan is not None and version <= self.earliest_plan[1].base_version

    def result(self) -> NotedOffsets:
        """Return what was found, if the topics that the newest note carries are sure."""
        mode = "" if self.carried is None else self.carried.mode
        topics = {**self.carried_topics(), **self.topics}
        return NotedOffsets(topics, mode=mode, noted_ms=self.noted_ms)

    def carried_topics(self) -> dict[str, StreamOffsets]:
        """Return the topics that have no note of their own, as the newest note has them."""
        carried = {} if self.carried is None else self.carried.topics
        return {topic: at for topic, at in carried.items() if topic not in self.topics}

    def _check_overlap(self, note: CommitNote, version: int) -> None:
        """Refuse a later batch of the same topic that was planned without this one."""
        later_version, later = self.oldest_plans.get(note.topic, (version, note))
        if later.base_version < version < later_version:
            raise KlogError(
                f"table {self.table}: version {later_version} has rows of topic {note.topic} that "
                f"version {version} has too: it was planned on version {later.base_version}, and "
                "Delta has forgotten the transaction between "
                f"(delta.setTransactionRetentionDuration). {_way_back(later_version)}"
            )
        self.oldest_plans[note.topic] = version, note

    def check_misplaced(self, replacing: TableCommit) -> None:
        """Refuse rows that were planned on what a commit has taken back or replaced."""
        if self.earliest_plan is None:
            return
        version, note = self.earliest_plan
        if note.base_version < replacing.version:
            raise KlogError(
                f"table {self.table}: version {replacing.version} is a {replacing.operation} that "
                "has replaced rows while to-delta was writing, and version "
                f"{version} has rows of topic {note.topic} that follow the rows of before. "
                f"{_way_back(version)}"
            )


def _way_back(version: int) -> str:
    """Return what to do about rows that a version has at a wrong place."""
    if version == 0:
        return "Drop the table, then run to-delta again"
    return (
        f"Run RESTORE TABLE ... TO VERSION AS OF {version - 1}, which takes back later commits of "
        "others too, then to-delta again"
    )


def find_noted_offsets(commits: Iterable[TableCommit], table: str, table_id: str) -> NotedOffsets:
    """Return where a table is in its topics, by its history.

    Args:
        commits: The commits, newest first, as far as they are needed.
        table: The table, for errors.
        table_id: Its id.

    Raises:
        KlogError: Rows are at a wrong place, which the message names.
        NewerFormatError: A later klog has copied to the table.
    """
    search = _Search(table, table_id)
    for commit in commits:
        if search.restored_version is not None and commit.version > search.restored_version:
            continue
        if search.is_complete_at(commit.version):
            return search.result()
        if commit.operation == _RESTORE:
            if not search.follow_restore(commit):
                break
        elif _replaces_rows(commit):
            search.check_misplaced(commit)
            break
        else:
            search.add(commit)
        if commit.version == 0 and not search.has_other_rows:
            return replace(search.result(), are_all_rows_noted=True)
    return replace(search.result(), topics=search.topics, lower_bounds=search.carried_topics())


def _replaces_rows(commit: TableCommit) -> bool:
    if commit.operation.startswith(_REPLACING):
        return True
    is_overwrite = commit.parameters.get("mode") == "Overwrite"
    return is_overwrite and not commit.parameters.get("predicate")
