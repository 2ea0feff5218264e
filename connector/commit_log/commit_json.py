"""A commit as JSON (docs/commit-protocol.md, A commit).

The rule: `decode_commit` keeps unknown fields, and refuses an unknown operation or a newer format.
`encode_commit` writes the lowest format that can express the commit.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit import (
    REPAIR,
    RESTORE,
    UNDELETE,
    Actions,
    Amount,
    Commit,
    Topic,
)
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, SidecarName, parse_sidecar_name
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES
from klog.connector.commit_log.format_versions import (
    FIRST_VERSION,
    REPAIR_FORMAT,
    check_format,
)
from klog.connector.commit_log.json_fields import (
    Fields,
    check_segment_file,
    check_text,
    check_type,
    parse_partition,
    shorten,
)
from klog.connector.commit_log.restore_json import (
    by_text,
    hole_from_json,
    hole_to_json,
    restore_from_json,
    restore_to_json,
)
from klog.connector.commit_log.undelete_json import undelete_from_json, undelete_to_json
from klog.connector.commit_log.writer_json import transaction_from_json, transaction_to_json
from klog.errors import NewerFormatError, UnsupportedFormatError
from klog.logformat.topic_partition import MAX_PARTITIONS

OPERATIONS = frozenset(
    {
        "append", "create-topic", "delete-topic", "alter-config", "add-partitions", "compact",
        "merge", "retain", "delete-records", "vacuum", "adopt", REPAIR, RESTORE, UNDELETE,
    }
)  # fmt: skip


def encode_commit(commit: Commit) -> bytes:
    """Return the bytes of a commit's file; what its sidecar has is left out.

    Args:
        commit: The commit.

    Raises:
        UnsupportedFormatError: A text of the commit cannot be encoded.
    """
    actions = commit.actions
    if commit.sidecar is not None:
        actions = replace(actions, add=(), remove=(), purge=())
    fields = {
        **commit.unknown_fields,
        **_header(commit),
        **_topic_fields(actions),
        **({} if commit.sidecar is None else {"sidecar": str(commit.sidecar)}),
        **_log_fields(actions),
    }
    try:
        return json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise UnsupportedFormatError(
            f"commit {commit.version} ({commit.operation}): a text of it has half of a surrogate "
            f"pair, which UTF-8 cannot encode: {exc}. Take it out"
        ) from exc


def _header(commit: Commit) -> dict[str, Any]:
    """Return the fields that every commit has."""
    file_format = commit.actions.format
    if commit.operation == REPAIR:
        file_format = max(file_format, REPAIR_FORMAT)
    return {
        "format": file_format,
        "since": FIRST_VERSION[file_format],
        "version": commit.version,
        "writeId": commit.write_id,
        **_previous(commit),
        "timestampMs": commit.timestamp_ms,
        "operation": commit.operation,
        "engine": commit.engine,
    }


def _topic_fields(actions: Actions) -> dict[str, Any]:
    """Return the fields of what happens to the topic as a whole, and to a writer's transactions."""
    fields: dict[str, Any] = {}
    if actions.create_topic is not None:
        topic = actions.create_topic
        fields["createTopic"] = {"topicId": topic.topic_id, "partitions": topic.partitions}
    if actions.delete_topic:
        fields["deleteTopic"] = {}
    if actions.writer_transaction is not None:
        fields["setProducer"] = transaction_to_json(actions.writer_transaction)
    if actions.restore is not None:
        fields["restore"] = restore_to_json(actions.restore)
    if actions.undelete is not None:
        fields["undeleteTopic"] = undelete_to_json(actions.undelete)
    return fields


def _log_fields(actions: Actions) -> dict[str, Any]:
    """Return the fields of what happens to the log: its configs, offsets and segments."""
    return {
        name: value
        for name, value in (
            ("setPartitions", actions.partitions),
            ("setHorizon", actions.vacuum_version),
            ("setConfig", dict(actions.config) or None),
            ("setLogStart", by_text(actions.log_start)),
            ("setLogEnd", by_text(actions.explicit_log_end)),
            ("setCleanedTo", by_text(actions.cleaned_to)),
            ("add", [segment_entries.entry_to_json(entry) for entry in actions.add] or None),
            ("remove", list(actions.remove) or None),
            ("removed", _amount_to_json(actions.removed)),
            ("forget", list(actions.purge) or None),
            ("addHoles", [hole_to_json(hole) for hole in actions.holes] or None),
            (
                "post",
                {k: {"logEnd": v} for k, v in (by_text(actions.asserted_log_end) or {}).items()}
                or None,
            ),
        )
        if value is not None
    }


def _previous(commit: Commit) -> dict[str, str]:
    write_id = commit.previous_write_id
    return {} if write_id is None else {"previousWriteId": write_id}


def decode_commit(data: bytes, topic: str, version: int) -> Commit:
    """Parse a commit's file, whose bytes may be anything.

    What is in its sidecar is not among its actions: the caller reads that file.

    Args:
        data: The bytes of the file.
        topic: The topic that its segments must belong to.
        version: The version that the commit must have.

    Raises:
        UnsupportedFormatError: It is not a commit of this topic and version, is too large, or has a
            format or an operation that this klog does not know.
    """
    if len(data) > MAX_COMMIT_BYTES:  # Only a writer gets here: readers check it.
        raise UnsupportedFormatError(
            f"commit {version} of {topic} would have {len(data)} bytes, at most "
            f"{MAX_COMMIT_BYTES} are read. Change less at a time"
        )
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise UnsupportedFormatError(f"it is not JSON: {exc}") from exc
    if not isinstance(fields, dict):
        raise UnsupportedFormatError("it is not a JSON object")
    check_format(fields)
    head = Fields(fields)
    if (file_version := head.number("version", MAX_VERSION)) != version:
        raise UnsupportedFormatError(f"it says that it is version {file_version}")
    operation = head.text("operation")
    if operation not in OPERATIONS:
        raise NewerFormatError(
            f"this klog does not know operation {shorten(operation)}; read the topic with a "
            "newer one"
        )
    for name, field in ((RESTORE, "restore"), (UNDELETE, "undeleteTopic")):
        if (operation == name) != (field in fields):
            raise UnsupportedFormatError(
                f"its operation is {operation}, which does not fit `{field}`"
            )
    commit = Commit(
        version=version,
        write_id=head.text("writeId"),
        previous_write_id=head.optional_text("previousWriteId"),
        timestamp_ms=head.number("timestampMs"),
        operation=operation,
        engine=head.text("engine"),
        actions=_actions(head, topic),
        sidecar=_sidecar(head, version),
        size_bytes=len(data),
    )
    return replace(commit, unknown_fields=head.unread())


def _actions(head: Fields, topic: str) -> Actions:
    new_topic = head.object("createTopic")
    topic_to_create = None
    if new_topic is not None:
        fields = Fields(new_topic)
        topic_to_create = Topic(fields.text("topicId"), fields.number("partitions", MAX_PARTITIONS))
    duplicate = [name for name in ("add", "remove", "forget") if name in head.names]
    if duplicate and head.optional_text("sidecar") is not None:
        raise UnsupportedFormatError(
            f"it has a sidecar, and {' and '.join(duplicate)} in its own JSON"
        )
    config = head.object("setConfig") or {}
    ends = head.object("post") or {}
    transaction = head.object("setProducer")
    removed = head.object("removed")
    restore, undelete = head.object("restore"), head.object("undeleteTopic")
    return Actions(
        add=tuple(segment_entries.entry_from_json(entry, topic) for entry in head.objects("add")),
        remove=tuple(check_segment_file(name, topic) for name in head.texts("remove")),
        removed=None if removed is None else _amount_from_json(Fields(removed)),
        create_topic=topic_to_create,
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
        writer_transaction=None
        if transaction is None
        else transaction_from_json(Fields(transaction)),
        purge=tuple(check_segment_file(name, topic) for name in head.texts("forget")),
        holes=tuple(map(hole_from_json, head.objects("addHoles"))),
        restore=None if restore is None else restore_from_json(Fields(restore)),
        undelete=None if undelete is None else undelete_from_json(Fields(undelete)),
        asserted_log_end={
            parse_partition("post", key): Fields(check_type("post", value, dict)).number("logEnd")
            for key, value in ends.items()
        },
    )


def _sidecar(head: Fields, version: int) -> SidecarName | None:
    """Read the name of the sidecar, which must have the version of the commit."""
    text = head.optional_text("sidecar")
    if text is None:
        return None
    name = parse_sidecar_name(text)
    if name is None or name.version != version:
        raise UnsupportedFormatError(f"sidecar {shorten(text)} is not one of version {version}")
    return name


def _amount_to_json(amount: Amount | None) -> dict[str, int] | None:
    return None if amount is None else {"records": amount.records, "bytes": amount.size_bytes}


def _amount_from_json(fields: Fields) -> Amount:
    return Amount(fields.number("records"), fields.number("bytes"))
