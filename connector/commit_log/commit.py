"""One commit of a topic's log.

The rule: a commit is one JSON object. The fields that every commit has come first. Then come its
actions, each under its own name and left out if there is none:

    format      version of this format; a newer one is refused with the klog that can read it
    since       the first klog that reads this format
    version     its number, also the name of the file
    writeId     unique to a write; a writer that got no answer finds its own commit by it
    previousWriteId  that of the commit before it, empty for version 0; klog 0.1 did not write it
    timestampMs above that of the commit before
    operation   append, create-topic, ...: an unknown one is refused
    engine      the program, its version and the user that wrote it: for people
    add, remove, removed, createTopic, setPartitions, setConfig, setLogStart, setLogEnd,
    setCleanedTo, setHorizon, setProducer, forget, addHoles, restore, undeleteTopic, post
    sidecar     name, length and CRC-32C of a Parquet file that has add, remove and forget, where
                they are so many that a commit would be larger than 1 MiB (`commit_sidecar.py`)

klog keeps and shows fields that it does not know, and never acts on them: a klog that adds a field
which changes the meaning of others raises the format. A commit has the lowest format that can say
it, so that an older klog refuses only what it would misread. Format 2 is what `adopt` needs of a
broker's log: `setLogEnd`, if no segment reaches the log's end, and in an entry `tornBytes` and
`aborted` (`segment_entries.py`). Format 3 is what `repair` needs: the operation, and `addHoles`, a
list of `partition`, `baseOffset` and `nextOffset`: offsets that have no records and never get any.
Its segments are in the order of partitions and offsets. Format 4 is what `restore` and `topics
undelete` need: their operations, and `restore` or `undeleteTopic`, which says what becomes that of
an earlier version (`Restore`, `UndeletedTopic`). The segments that such a commit adds are removed
ones, which are live again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit_log_paths import SidecarName
from klog.connector.commit_log.format_versions import (
    ADOPT_FORMAT,
    MIN_FORMAT,
    REPAIR_FORMAT,
    RESTORE_FORMAT,
)
from klog.connector.commit_log.past_restores import PastRestore
from klog.text_output import time_text

REPAIR = "repair"
RESTORE = "restore"
UNDELETE = "undelete-topic"


@dataclass(frozen=True, slots=True)
class Topic:
    """An incarnation of a topic: if it is deleted and created again, its id is another."""

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class WriterTransaction:
    """The last batch of a named writer, and the run and query that wrote it.

    `superseded` are the runs before this one, newest last: a batch of one of them is fenced.
    """

    name: str
    batch_id: int
    query_id: str
    run_id: str
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Amount:
    """The records and the bytes of segments.

    Attributes:
        records: The number of records.
        size_bytes: The size in bytes.
    """

    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Hole:
    """Offsets of a partition that have no records and never get any."""

    partition: int
    base_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Restore:
    """What becomes that of an earlier version, besides the segments. Log ends do not.

    Attributes:
        version: The version that is restored.
        log_start: The log starts that change, by partition. They may become lower.
        log_end: The log ends as of `version` of the partitions that end later now: from there to
            the log end is a hole.
        cleaned_to: The offsets that the log cleaner has reached, where they change.
        holes: All holes of the topic.
    """

    version: int
    log_start: Mapping[int, int] = field(default_factory=dict)
    log_end: Mapping[int, int] = field(default_factory=dict)
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True, slots=True)
class UndeletedTopic:
    """A deleted topic as of its last version, besides its segments: the state after the commit.

    Attributes:
        version: The version before the deletion.
        topic: Its id and number of partitions.
        config: Its configs, as text.
        log_start: The log starts that are not 0, by partition.
        log_end: The log ends that are not 0, by partition.
        cleaned_to: The offsets that the log cleaner has reached, by partition.
        holes: Its holes.
        writer_transactions: The last batch of each named writer.
        restores: Its restores, oldest first.
    """

    version: int
    topic: Topic
    config: Mapping[str, str] = field(default_factory=dict)
    log_start: Mapping[int, int] = field(default_factory=dict)
    log_end: Mapping[int, int] = field(default_factory=dict)
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    holes: tuple[Hole, ...] = ()
    writer_transactions: tuple[WriterTransaction, ...] = ()
    restores: tuple[PastRestore, ...] = ()


@dataclass(frozen=True, slots=True)
class Actions:
    """The changes of a commit. Offsets and versions are those of the log; ends are exclusive."""

    add: tuple[segment_entries.SegmentEntry, ...] = ()
    remove: tuple[str, ...] = ()
    removed: Amount | None = None
    """Redundant, for people: records and bytes of the segments that are no longer live."""
    create_topic: Topic | None = None
    delete_topic: bool = False
    partitions: int | None = None
    config: Mapping[str, str | None] = field(default_factory=dict)
    log_start: Mapping[int, int] = field(default_factory=dict)
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    vacuum_version: int | None = None
    writer_transaction: WriterTransaction | None = None
    purge: tuple[str, ...] = ()
    """Removed segments whose files vacuum has deleted."""
    asserted_log_end: Mapping[int, int] = field(default_factory=dict)
    """Redundant: the log ends after the commit, which a replay asserts."""
    explicit_log_end: Mapping[int, int] = field(default_factory=dict)
    """The log end of each partition whose segments do not reach it."""
    holes: tuple[Hole, ...] = ()
    restore: Restore | None = None
    undelete: UndeletedTopic | None = None

    @property
    def adds_removed_segments(self) -> bool:
        """Return whether `add` has removed segments, which are live again."""
        return self.restore is not None or self.undelete is not None

    @property
    def created_topic(self) -> Topic | None:
        """Return the topic that the commit creates, or brings back; None without one."""
        return self.create_topic if self.undelete is None else self.undelete.topic

    @property
    def format(self) -> int:
        """Return the lowest format that can say these actions."""
        if self.adds_removed_segments:
            return RESTORE_FORMAT
        if self.holes:
            return REPAIR_FORMAT
        is_plain = not self.explicit_log_end and all(map(segment_entries.is_format_1, self.add))
        return MIN_FORMAT if is_plain else ADOPT_FORMAT


@dataclass(frozen=True, slots=True, repr=False)
class Commit:
    """A commit: one numbered change of a topic (docs/commit-protocol.md).

    Attributes:
        version: Its number, from 0. The topic after this commit is the topic as of this version.
        write_id: The id of the write. All attempts of one write have the same id.
        timestamp_ms: Its time in milliseconds since 1970. It is above that of the commit before.
        operation: The kind of change, such as `append` or `create-topic`.
        engine: The klog version, the user and the machine that wrote it.
        actions: Its changes. They are for klog's own code; `repr(commit)` summarizes them.
        unknown_fields: The fields that a later klog wrote and that this klog does not know.
        sidecar: The file with its segments, if the commit itself does not list them.
        previous_write_id: The write id of the commit before it; None if klog 0.1 wrote this one.
        size_bytes: The size of its files on the store in bytes, as far as klog knows it.
    """

    version: int
    write_id: str
    timestamp_ms: int
    operation: str
    engine: str
    actions: Actions
    unknown_fields: Mapping[str, Any] = field(default_factory=dict)
    sidecar: SidecarName | None = None
    previous_write_id: str | None = None
    size_bytes: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        """Return one line: what a person asks of a commit, not the segments that it names."""
        added, removed = self.actions.add, self.actions.remove
        counts = {
            "records": sum(segment["record_count"] for segment in added),
            "segments added": len(added),
            "segments removed": len(removed),
        }
        parts = [f"{count} {name}" for name, count in counts.items() if count]
        head = f"version {self.version}, {self.operation} at {time_text(self.timestamp_ms)}"
        return f"<Commit {', '.join([head, *parts])}, by {self.engine}>"

    def is_on_top_of(self, write_id: str) -> bool:
        """Return whether the commit may have been put on top of this write; klog 0.1 does not say.

        Args:
            write_id: The write id of the commit before it.
        """
        return self.previous_write_id in (None, write_id)
