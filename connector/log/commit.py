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

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from klog.connector.log import entries
from klog.connector.log.json_fields import (
    Fields,
    as_kind,
    partition_number,
    segment_file_of,
    shortly,
    text_of,
)
from klog.connector.log.max_sizes import MAX_COMMIT_BYTES
from klog.connector.log.paths import MAX_VERSION, SidecarName, sidecar_name
from klog.errors import UnsupportedFormatError
from klog.logformat.names import MAX_PARTITION

FORMAT = 3
"""The highest that this klog reads."""
LEAST_FORMAT = 1
ADOPT_FORMAT = 2
REPAIR = "repair"
SINCE = {1: "0.1.0", 2: "0.1.0", 3: "0.2.0"}
"""By format the first klog that reads it."""
OPERATIONS = frozenset(
    {
        "append", "create-topic", "delete-topic", "alter-config", "add-partitions", "compact",
        "merge", "retain", "delete-records", "vacuum", "adopt", REPAIR,
    }
)  # fmt: skip
MAX_PARTITIONS = 100_000
"""A state holds two numbers a partition: more would let one small commit take all memory."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's incarnation: one made anew under the same name has another id."""

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Progress:
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

    add: tuple[entries.Entry, ...] = ()
    remove: tuple[str, ...] = ()
    removed: Amount | None = None
    """Redundant, for people: what the segments held that are live no more."""
    create_topic: Topic | None = None
    delete_topic: bool = False
    partitions: int | None = None
    config: Mapping[str, str | None] = field(default_factory=dict)
    log_start: Mapping[int, int] = field(default_factory=dict)
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    horizon: int | None = None
    progress: Progress | None = None
    forget: tuple[str, ...] = ()
    """Removed segments whose files are gone."""
    log_end: Mapping[int, int] = field(default_factory=dict)
    """Redundant: what the log ends are afterwards, which a replay asserts."""
    ends_at: Mapping[int, int] = field(default_factory=dict)
    """Where a partition ends, if no segment reaches its end."""
    holes: tuple[Hole, ...] = ()

    @property
    def format(self) -> int:
        """Give the lowest format that can say this."""
        if self.holes:
            return FORMAT
        is_plain = not self.ends_at and all(map(entries.is_plain, self.add))
        return LEAST_FORMAT if is_plain else ADOPT_FORMAT


@dataclass(frozen=True, slots=True)
class Commit:
    """A numbered entry of a topic's log."""

    version: int
    write_id: str
    timestamp_ms: int
    operation: str
    engine: str
    actions: Actions
    others: Mapping[str, Any] = field(default_factory=dict)
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


def encode(commit: Commit) -> bytes:
    """Give the bytes of a commit's file; what its sidecar has stands there alone."""
    actions = commit.actions
    form = FORMAT if commit.operation == REPAIR else actions.format
    if commit.sidecar is not None:
        actions = replace(actions, add=(), remove=(), forget=())
    said: dict[str, Any] = {
        "format": form,
        "since": SINCE[form],
        "version": commit.version,
        "writeId": commit.write_id,
        **_previous(commit),
        "timestampMs": commit.timestamp_ms,
        "operation": commit.operation,
        "engine": commit.engine,
    }
    if actions.create_topic is not None:
        topic = actions.create_topic
        said["createTopic"] = {"topicId": topic.topic_id, "partitions": topic.partitions}
    if actions.delete_topic:
        said["deleteTopic"] = {}
    if actions.progress is not None:
        said["setProducer"] = _progress_to_json(actions.progress)
    if commit.sidecar is not None:
        said["sidecar"] = str(commit.sidecar)
    optional: dict[str, Any] = {
        name: value
        for name, value in (
            ("setPartitions", actions.partitions),
            ("setHorizon", actions.horizon),
            ("setConfig", dict(actions.config) or None),
            ("setLogStart", _by_text(actions.log_start)),
            ("setLogEnd", _by_text(actions.ends_at)),
            ("setCleanedTo", _by_text(actions.cleaned_to)),
            ("add", [entries.to_json(entry) for entry in actions.add] or None),
            ("remove", list(actions.remove) or None),
            ("removed", _amount_to_json(actions.removed)),
            ("forget", list(actions.forget) or None),
            ("addHoles", [hole_to_json(hole) for hole in actions.holes] or None),
            (
                "post",
                {k: {"logEnd": v} for k, v in (_by_text(actions.log_end) or {}).items()} or None,
            ),
        )
        if value is not None
    }
    try:
        return json.dumps({**commit.others, **said, **optional}, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise UnsupportedFormatError(f"a text of the commit cannot be written: {exc}") from exc


def _previous(commit: Commit) -> dict[str, str]:
    found = commit.previous_write_id
    return {} if found is None else {"previousWriteId": found}


def decode(data: bytes, topic: str, version: int) -> Commit:
    """Read a commit's file, which is the one of `version` and may say anything.

    What stands in its sidecar is not among its actions yet: the caller reads that file.

    Raises `UnsupportedFormatError` for what is no commit of this topic and version, for a format or
    an operation that this klog does not know.
    """
    if len(data) > MAX_COMMIT_BYTES:  # A reader has not read it: this is who is about to write it.
        raise UnsupportedFormatError(
            f"commit {version} of {topic} would have {len(data)} bytes, at most "
            f"{MAX_COMMIT_BYTES} are read. Change less at a time"
        )
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise UnsupportedFormatError(f"it is no JSON: {exc}") from exc
    if not isinstance(said, dict):
        raise UnsupportedFormatError("it is no JSON object")
    check_format(said)
    head = Fields(said)
    if (found := head.number("version", MAX_VERSION)) != version:
        raise UnsupportedFormatError(f"it says that it is version {found}")
    operation = head.text("operation")
    if operation not in OPERATIONS:
        raise UnsupportedFormatError(
            f"operation {shortly(operation)} is none that this klog knows; read the topic with a "
            "newer one"
        )
    return Commit(
        version=version,
        write_id=head.text("writeId"),
        previous_write_id=head.optional_text("previousWriteId"),
        timestamp_ms=head.number("timestampMs"),
        operation=operation,
        engine=head.text("engine"),
        actions=_actions(head, topic),
        sidecar=_sidecar(head, version),
        size_bytes=len(data),
        others={name: value for name, value in said.items() if name not in head.known},
    )


def check_format(said: Mapping[str, Any]) -> None:
    """Refuse a file of klog's whose format is newer than this klog; it says which one reads it."""
    found = said.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise UnsupportedFormatError(f"its format is {shortly(found)}")
    if found > FORMAT:
        raise UnsupportedFormatError(
            f"it has format {found}, this klog reads up to {FORMAT}; "
            f"install klog {str(said.get('since'))[:100]} or newer"
        )


def _actions(head: Fields, topic: str) -> Actions:
    created = head.object("createTopic")
    made = None
    if created is not None:
        fields = Fields(created)
        made = Topic(fields.text("topicId"), fields.number("partitions", MAX_PARTITIONS))
    beside = [name for name in ("add", "remove", "forget") if name in head.given]
    if beside and head.optional_text("sidecar") is not None:
        raise UnsupportedFormatError(f"it has a sidecar, and {' and '.join(beside)} beside it")
    config = head.object("setConfig") or {}
    ends = head.object("post") or {}
    progress = head.object("setProducer")
    removed = head.object("removed")
    return Actions(
        add=tuple(entries.from_json(entry, topic) for entry in head.objects("add")),
        remove=tuple(segment_file_of(name, topic) for name in head.texts("remove")),
        removed=None if removed is None else _amount_from_json(removed),
        create_topic=made,
        delete_topic=head.object("deleteTopic") is not None,
        partitions=head.optional_number("setPartitions", MAX_PARTITIONS),
        config={
            text_of("setConfig", k): None if v is None else text_of("setConfig", v)
            for k, v in config.items()
        },
        log_start=head.by_partition("setLogStart"),
        ends_at=head.by_partition("setLogEnd"),
        cleaned_to=head.by_partition("setCleanedTo"),
        horizon=head.optional_number("setHorizon", MAX_VERSION),
        progress=None if progress is None else _progress_from_json(progress),
        forget=tuple(segment_file_of(name, topic) for name in head.texts("forget")),
        holes=tuple(map(hole_from_json, head.objects("addHoles"))),
        log_end={
            partition_number("post", key): Fields(as_kind("post", value, dict)).number("logEnd")
            for key, value in ends.items()
        },
    )


def hole_to_json(hole: Hole) -> dict[str, int]:
    """Name a hole's fields as a commit does."""
    return {
        "partition": hole.partition,
        "baseOffset": hole.base_offset,
        "nextOffset": hole.next_offset,
    }


def hole_from_json(given: Mapping[str, Any]) -> Hole:
    """Check a hole, whose fields may say anything."""
    fields = Fields(given)
    hole = Hole(
        fields.number("partition", MAX_PARTITION),
        fields.number("baseOffset"),
        fields.number("nextOffset"),
    )
    if hole.next_offset <= hole.base_offset:
        raise UnsupportedFormatError(
            f"a hole of partition {hole.partition} is from {hole.base_offset} to {hole.next_offset}"
        )
    return hole


def _sidecar(head: Fields, version: int) -> SidecarName | None:
    """Read the name of the sidecar, which is of this version or none of this commit's."""
    said = head.optional_text("sidecar")
    if said is None:
        return None
    name = sidecar_name(said)
    if name is None or name.version != version:
        raise UnsupportedFormatError(f"sidecar {shortly(said)} is none of version {version}")
    return name


def _progress_to_json(progress: Progress) -> dict[str, Any]:
    return {
        "transactionalId": progress.name,
        "batchId": progress.batch_id,
        "queryId": progress.query_id,
        "runId": progress.run_id,
        "superseded": list(progress.superseded),
    }


def _progress_from_json(said: Mapping[str, Any]) -> Progress:
    fields = Fields(said)
    return Progress(
        fields.text("transactionalId"),
        fields.number("batchId"),
        fields.text("queryId"),
        fields.text("runId"),
        fields.texts("superseded"),
    )


def _amount_to_json(amount: Amount | None) -> dict[str, int] | None:
    return None if amount is None else {"records": amount.records, "bytes": amount.size_bytes}


def _amount_from_json(said: Mapping[str, Any]) -> Amount:
    fields = Fields(said)
    return Amount(fields.number("records"), fields.number("bytes"))


def _by_text(numbers: Mapping[int, int]) -> dict[str, int] | None:
    return {str(partition): number for partition, number in numbers.items()} or None
