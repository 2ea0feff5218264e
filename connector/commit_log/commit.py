"""One commit of a topic's log: what it says, to JSON and back.

The rule: a commit is one JSON object. What every commit says stands first, then its actions, each
under its own name and left out where there is none:

    format      version of this format; a newer one is refused with the klog that can read it
    since       the first klog that reads this format
    version     its number: the file's name
    writeId     made once a try to write; who lost an answer finds their own commit by it
    previousWriteId  that of the commit before it, empty for version 0; klog 0.1 wrote none
    timestampMs above that of the commit before
    operation   append, create-topic, ...: an unknown one is refused
    engine      who wrote it, with what version: for people
    add, remove, removed, createTopic, setPartitions, setConfig, setLogStart, setLogEnd,
    setCleanedTo, setHorizon, setProducer, forget, addHoles, post
    sidecar     name, length and CRC-32C of a Parquet file that has add, remove and forget, where
                they are so many that a commit would be larger than 1 MiB (`sidecar.py`)

Fields that this klog does not know are kept and shown, never acted on: whoever adds one that
changes what the rest means raises the format. A commit has the lowest format that can say it, so
that a klog that knows less refuses only what it would misread. Format 2 is what `adopt` needs of a
broker's log: `setLogEnd`, where no segment reaches the log's end, and in an entry `tornBytes` and
`aborted` (`entries.py`). Format 3 is what `repair` needs: the operation, and `addHoles`, a list of
`partition`, `baseOffset` and `nextOffset`: offsets that have no records, and never get any. It
names its segments in the order of partitions and offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit_log_paths import SidecarName
from klog.connector.commit_log.format_versions import ADOPT_FORMAT, MAX_FORMAT, MIN_FORMAT

REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's incarnation: one made anew under the same name has another id."""

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class WriterTransaction:
    """How far a named writer has come: its last batch, and the run and query that wrote it.

    `superseded` are the runs before this one, newest last: what one of them still writes is fenced.
    """

    name: str
    batch_id: int
    query_id: str
    run_id: str
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Amount:
    """How much segments hold."""

    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Hole:
    """Offsets of a partition that have no records, and never get any."""

    partition: int
    base_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Actions:
    """What a commit changes; offsets and versions are those of the log, exclusive at their ends."""

    add: tuple[segment_entries.SegmentEntry, ...] = ()
    remove: tuple[str, ...] = ()
    removed: Amount | None = None
    """Redundant, for people: what the segments held that are live no more."""
    create_topic: Topic | None = None
    delete_topic: bool = False
    partitions: int | None = None
    config: Mapping[str, str | None] = field(default_factory=dict)
    log_start: Mapping[int, int] = field(default_factory=dict)
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    vacuum_version: int | None = None
    writer_transaction: WriterTransaction | None = None
    purge: tuple[str, ...] = ()
    """Removed segments whose files are gone."""
    asserted_log_end: Mapping[int, int] = field(default_factory=dict)
    """Redundant: what the log ends are afterwards, which a replay asserts."""
    explicit_log_end: Mapping[int, int] = field(default_factory=dict)
    """Where a partition ends, if no segment reaches its end."""
    holes: tuple[Hole, ...] = ()

    @property
    def format(self) -> int:
        """Give the lowest format that can say this."""
        if self.holes:
            return MAX_FORMAT
        is_plain = not self.explicit_log_end and all(map(segment_entries.is_format_1, self.add))
        return MIN_FORMAT if is_plain else ADOPT_FORMAT


@dataclass(frozen=True, slots=True)
class Commit:
    """A numbered entry of a topic's log."""

    version: int
    write_id: str
    timestamp_ms: int
    operation: str
    engine: str
    actions: Actions
    unknown_fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of later versions, as they were read."""
    sidecar: SidecarName | None = None
    """Where `add`, `remove` and `forget` stand, if not in the commit itself."""
    previous_write_id: str | None = None
    """Of the commit that it was put on top of; None where its writer did not say."""
    size_bytes: int = field(default=0, compare=False)
    """Of its files on the store, as far as they are known."""

    def is_on_top_of(self, write_id: str) -> bool:
        """Return whether it was put on top of this write; klog 0.1 does not say, so it may be."""
        return self.previous_write_id in (None, write_id)
