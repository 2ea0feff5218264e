"""A commit as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit import (
    REPAIR,
    Actions,
    Amount,
    Commit,
    Hole,
    Topic,
    WriterTransaction,
)
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, SidecarName, parse_sidecar_name
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES
from klog.connector.commit_log.format_versions import FIRST_VERSION, MAX_FORMAT, check_format
from klog.connector.commit_log.json_fields import (
    Fields,
    check_segment_file,
    check_text,
    check_type,
    parse_partition,
    shorten,
)
from klog.connector.topic_partition import MAX_PARTITIONS
from klog.errors import UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_PARTITION

OPERATIONS = frozenset(
    {
        "append", "create-topic", "delete-topic", "alter-config", "add-partitions", "compact",
        "merge", "retain", "delete-records", "vacuum", "adopt", REPAIR,
    }
)  # fmt: skip


def encode_commit(commit: Commit) -> bytes:
    """Give the bytes of a commit's file; what its sidecar has stands there alone."""
    actions = commit.actions
    form = MAX_FORMAT if commit.operation == REPAIR else actions.format
    if commit.sidecar is not None:
        actions = replace(actions, add=(), remove=(), purge=())
    said: dict[str, Any] = {
        "format": form,
        "since": FIRST_VERSION[form],
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
    if actions.writer_transaction is not None:
        said["setProducer"] = _progress_to_json(actions.writer_transaction)
    if commit.sidecar is not None:
        said["sidecar"] = str(commit.sidecar)
    optional: dict[str, Any] = {
        name: value
        for name, value in (
            ("setPartitions", actions.partitions),
            ("setHorizon", actions.vacuum_version),
            ("setConfig", dict(actions.config) or None),
            ("setLogStart", _by_text(actions.log_start)),
            ("setLogEnd", _by_text(actions.explicit_log_end)),
            ("setCleanedTo", _by_text(actions.cleaned_to)),
            ("add", [segment_entries.entry_to_json(entry) for entry in actions.add] or None),
            ("remove", list(actions.remove) or None),
            ("removed", _amount_to_json(actions.removed)),
            ("forget", list(actions.purge) or None),
            ("addHoles", [hole_to_json(hole) for hole in actions.holes] or None),
            (
                "post",
                {k: {"logEnd": v} for k, v in (_by_text(actions.asserted_log_end) or {}).items()}
                or None,
            ),
        )
        if value is not None
    }
    try:
        return json.dumps(
            {**commit.unknown_fields, **said, **optional}, ensure_ascii=False
        ).encode()
    except UnicodeEncodeError as exc:
        raise UnsupportedFormatError(f"a text of the commit cannot be written: {exc}") from exc


def _previous(commit: Commit) -> dict[str, str]:
    found = commit.previous_write_id
    return {} if found is None else {"previousWriteId": found}


def decode_commit(data: bytes, topic: str, version: int) -> Commit:
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
            f"operation {shorten(operation)} is none that this klog knows; read the topic with a "
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
        unknown_fields={name: value for name, value in said.items() if name not in head.known},
    )


def _actions(head: Fields, topic: str) -> Actions:
    created = head.object("createTopic")
    made = None
    if created is not None:
        fields = Fields(created)
        made = Topic(fields.text("topicId"), fields.number("partitions", MAX_PARTITIONS))
    beside = [name for name in ("add", "remove", "forget") if name in head.names]
    if beside and head.optional_text("sidecar") is not None:
        raise UnsupportedFormatError(f"it has a sidecar, and {' and '.join(beside)} beside it")
    config = head.object("setConfig") or {}
    ends = head.object("post") or {}
    progress = head.object("setProducer")
    removed = head.object("removed")
    return Actions(
        add=tuple(segment_entries.entry_from_json(entry, topic) for entry in head.objects("add")),
        remove=tuple(check_segment_file(name, topic) for name in head.texts("remove")),
        removed=None if removed is None else _amount_from_json(removed),
        create_topic=made,
        delete_topic=head.object("deleteTopic") is not None,
        partitions=head.optional_number("setPartitions", MAX_PARTITIONS),
        config={
            check_text("setConfig", k): None if v is None else check_text("setConfig", v)
            for k, v in config.items()
        },
        log_start=head.by_partition("setLogStart"),
        explicit_log_end=head.by_partition("setLogEnd"),
        cleaned_to=head.by_partition("setCleanedTo"),
        vacuum_version=head.optional_number("setHorizon", MAX_VERSION),
        writer_transaction=None if progress is None else _progress_from_json(progress),
        purge=tuple(check_segment_file(name, topic) for name in head.texts("forget")),
        holes=tuple(map(hole_from_json, head.objects("addHoles"))),
        asserted_log_end={
            parse_partition("post", key): Fields(check_type("post", value, dict)).number("logEnd")
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
    name = parse_sidecar_name(said)
    if name is None or name.version != version:
        raise UnsupportedFormatError(f"sidecar {shorten(said)} is none of version {version}")
    return name


def _progress_to_json(progress: WriterTransaction) -> dict[str, Any]:
    return {
        "transactionalId": progress.name,
        "batchId": progress.batch_id,
        "queryId": progress.query_id,
        "runId": progress.run_id,
        "superseded": list(progress.superseded),
    }


def _progress_from_json(said: Mapping[str, Any]) -> WriterTransaction:
    fields = Fields(said)
    return WriterTransaction(
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
