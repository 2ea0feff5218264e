"""Where a table is in its topics, by the notes of its commits.

The rule: the history is read from its newest commit back. The last note of a topic counts. After a
RESTORE it goes on at the version that was restored, so a restored table is where it was then. A
commit that replaced the rows of the table ends the search: what was there before says nothing. So
does a clone, whose rows are another table's. What no note says, the rows do (`row_offsets.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import KlogError
from klog.jobs.copying_to_delta.commit_note import CommitNote, parse_commit_note
from klog.jobs.shared.delta.delta_target import TableCommit

_RESTORE = "RESTORE"
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
        are_all_rows_noted: Whether the table has had no rows but those of commits with notes. So it
            has none of a topic that no note has.
    """

    topics: Mapping[str, StreamOffsets]
    lower_bounds: Mapping[str, StreamOffsets] = field(default_factory=dict)
    are_all_rows_noted: bool = False


@dataclass(slots=True)
class _Search:
    """What the commits that were read so far have said."""

    table: str
    topics: dict[str, StreamOffsets] = field(default_factory=dict)
    carried: CommitNote | None = None
    """The newest note, for the topics that it has not copied."""
    earliest_plan: tuple[int, CommitNote] | None = None
    """Of the notes, the one that was planned first, and the version of its commit."""
    has_other_rows: bool = False
    restored_version: int | None = None
    """What a RESTORE has restored: the versions between are not part of what the table has."""

    def add(self, commit: TableCommit) -> None:
        """Take the note of a commit, if it has one."""
        note = parse_commit_note(commit.user_metadata, self.table, commit.version)
        if note is None:
            self.has_other_rows |= commit.operation not in _WITHOUT_ROWS
            return
        if self.earliest_plan is None or note.base_version < self.earliest_plan[1].base_version:
            self.earliest_plan = (commit.version, note)
        self.topics.setdefault(note.topic, note.topics[note.topic])
        if self.carried is None:
            self.carried = note

    def follow_restore(self, commit: TableCommit) -> bool:
        """Go on at the version that a RESTORE has restored; return whether it says which."""
        self._check_misplaced(commit)
        version = commit.parameters.get("version")
        if version is None:
            return False
        self.restored_version = int(version)
        return True

    def is_complete_at(self, version: int) -> bool:
        """Return whether no commit at or before a version can say more."""
        return self.earliest_plan is not None and version <= self.earliest_plan[1].base_version

    def carried_topics(self) -> dict[str, StreamOffsets]:
        """Return the topics that have no note of their own, as the newest note has them."""
        carried = {} if self.carried is None else self.carried.topics
        return {topic: at for topic, at in carried.items() if topic not in self.topics}

    def _check_misplaced(self, restore: TableCommit) -> None:
        """Refuse rows that were planned on what a RESTORE has taken back."""
        if self.earliest_plan is None:
            return
        version, note = self.earliest_plan
        if note.base_version < restore.version:
            raise KlogError(
                f"table {self.table}: version {restore.version} is a RESTORE that came while "
                f"to-delta was writing, and version {version} has rows of topic {note.topic} that "
                "follow what was taken back. Run RESTORE TABLE ... TO VERSION AS OF "
                f"{version - 1}, then to-delta again"
            )


def find_noted_offsets(commits: Iterable[TableCommit], table: str) -> NotedOffsets:
    """Return where a table is in its topics, by its history.

    Args:
        commits: The commits, newest first, as far as they are needed.
        table: The table, for errors.

    Raises:
        KlogError: Rows are at a wrong place, which the message names.
        NewerFormatError: A later klog has copied to the table.
    """
    search = _Search(table)
    for commit in commits:
        if search.restored_version is not None and commit.version > search.restored_version:
            continue
        if search.is_complete_at(commit.version):
            return NotedOffsets({**search.carried_topics(), **search.topics})
        if commit.operation == _RESTORE:
            if not search.follow_restore(commit):
                break
        elif _replaces_rows(commit):
            break
        else:
            search.add(commit)
        if commit.version == 0 and not search.has_other_rows:
            return NotedOffsets(
                {**search.carried_topics(), **search.topics}, are_all_rows_noted=True
            )
    return NotedOffsets(search.topics, search.carried_topics())


def _replaces_rows(commit: TableCommit) -> bool:
    if commit.operation.startswith(_REPLACING):
        return True
    is_overwrite = commit.parameters.get("mode") == "Overwrite"
    return is_overwrite and not commit.parameters.get("predicate")
