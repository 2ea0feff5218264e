"""How `klog dump` shows a record: its metadata, key and payload, or the fields of a control record.

Keys and payloads are shown as UTF-8 text, invalid bytes replaced as Java replaces them; with a
decoder, as Kafka's own tool shows the records of `__consumer_offsets` and `__transaction_state`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from klog.errors import CorruptRecordError
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.internal_topics.internal_records import (
    ASSIGNMENT,
    SUBSCRIPTION,
    InternalRecord,
    decode_group_record,
    decode_transaction_record,
    decode_versioned,
)
from klog.logformat.producers import control_records
from klog.logformat.protocol.message_schema import Fields
from klog.tools.dump_lines import Parts, format_row
from klog.tools.dump_values import Base64, Value, column_values, is_large

Shown: TypeAlias = "Value | str | Fields | None"
Decoder: TypeAlias = Callable[[int, "Value | None", "Value | None"], tuple[Shown, Shown]]
"""(offset, key, value) to the shown key and payload; None for nothing to show."""

Row: TypeAlias = "tuple[int, int, Value | None, Value | None, list[dict[str, Any]] | None]"
"""Offset, timestamp in ms, key, value and headers of a record."""

DELETED = "<DELETE>"
_CONTROL_TITLES = {
    control_records.LEADER_CHANGE: "LeaderChange:",
    control_records.SNAPSHOT_HEADER: "SnapshotHeader",
    control_records.SNAPSHOT_FOOTER: "SnapshotFooter",
    control_records.KRAFT_VERSION: "KRaftVersion",
    control_records.KRAFT_VOTERS: "KRaftVoters",
}
_CONSUMER = "consumer"
"""The protocol type of groups whose members' bytes Kafka's consumer wrote."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The fields of a batch that its records need."""

    magic: int
    base_offset: int
    base_sequence: int
    timestamp_type: str
    is_control: bool


@dataclass(frozen=True, slots=True)
class Show:
    """What to show of records: their metadata, their content, and the decoder of the content."""

    metadata: bool
    content: bool
    decoder: Decoder


def record_rows(records: RecordColumns) -> list[Row]:
    """Return decoded records, with all their columns, as rows."""
    nested = (records.timestamp_ms, records.headers)
    timestamps, headers = ([] if column is None else column.tolist() for column in nested)
    keys, values = (column_values(column) for column in (records.key, records.value))
    return list(zip(records.offset.tolist(), timestamps, keys, values, headers, strict=True))


def format_records(
    rows: Iterable[Row],
    checks: Iterable[str],
    batch: Batch,
    show: Show,
    report: Callable[[int, str], None],
) -> Iterator[tuple[Parts, Fields]]:
    """Yield each record of a batch as parts of a line and as values.

    `checks` has the text of each record's own checksum. `report` is called with the offset of a
    record that cannot be decoded and the reason.
    """
    for (offset, timestamp, key, value, headers), check in zip(rows, checks, strict=True):
        fields: Fields = {}
        parts: Parts = []
        if show.metadata:
            fields = _metadata(offset, timestamp, key, value, headers, batch)
            parts.append(f" {format_row(fields)}{check}")
            if batch.is_control:
                title, control_fields = _control(offset, key, value, report)
                parts.append(f" {title}")
                fields |= control_fields
        if show.content and not batch.is_control:
            for name, part in zip(
                ("key", "payload"), _decoded(show, offset, key, value, report), strict=True
            ):
                if part is not None:
                    parts += [f" {name}: ", *_texts(part)]
                    fields[name] = part
        yield (["|", *parts] if parts else []), fields


def plain(offset: int, key: Value | None, value: Value | None) -> tuple[Shown, Shown]:
    """Show key and payload unchanged."""
    return key, value


def group_record(offset: int, key: Value | None, value: Value | None) -> tuple[Shown, Shown]:
    """Show a record of `__consumer_offsets`. Raises `CorruptRecordError`."""
    if key is None:
        raise CorruptRecordError("a record of __consumer_offsets without a key")
    record = decode_group_record(key, value)
    if not record.name:
        return f"Unknown record type {record.key_version} at offset {offset}, skipping.", None
    payload = _payload(record, value)
    if isinstance(record.value, dict) and record.value.get("protocolType") == _CONSUMER:
        payload = {**_versioned(record.value_version), "data": _with_members(record.value)}
    return _key(record), payload


def transaction_record(offset: int, key: Value | None, value: Value | None) -> tuple[Shown, Shown]:
    """Show a record of `__transaction_state`. Raises `CorruptRecordError`."""
    if key is None:
        raise CorruptRecordError("a record of __transaction_state without a key")
    record = decode_transaction_record(key, value)
    if not record.name:
        return f"Unknown record type {record.key_version} at offset {offset}, skipping.", None
    return _key(record), _payload(record, value)


def _metadata(
    offset: int,
    timestamp: int,
    key: Value | None,
    value: Value | None,
    headers: list[dict[str, Any]] | None,
    batch: Batch,
) -> Fields:
    fields: Fields = {
        "offset": offset,
        "timestampType": batch.timestamp_type,
        "timestamp": timestamp,
        "keySize": -1 if key is None else len(key),
        "valueSize": -1 if value is None else len(value),
    }
    if batch.magic > 1:
        fields["sequence"] = increment_sequence(batch.base_sequence, offset - batch.base_offset)
        fields["headerKeys"] = HeaderKeys(header["key"] for header in headers or ())
    return fields


class HeaderKeys(list[str]):
    """Names of headers, which print as Kafka prints them."""

    def __str__(self) -> str:
        """Return the names with commas, without quotes."""
        return f"[{','.join(self)}]"


def _control(
    offset: int, key: Value | None, value: Value | None, report: Callable[[int, str], None]
) -> tuple[str, Fields]:
    try:
        record = control_records.decode_control_record(key or b"", value or b"")
    except CorruptRecordError as exc:
        report(offset, exc.reason)
        return "controlType: unreadable", {"controlType": None}
    fields: Fields = {"controlType": record.name}
    if record.fields is None:
        fields["controlTypeId"] = record.type
        return f"controlType: {record.name}({record.type})", fields
    if record.type in (control_records.ABORT, control_records.COMMIT):
        fields |= record.fields
        return f"endTxnMarker: {record.name} {format_row(record.fields)}", fields
    fields["control"] = record.fields
    return f"{_CONTROL_TITLES[record.type]} {_json(record.fields)}", fields


def _decoded(
    show: Show,
    offset: int,
    key: Value | None,
    value: Value | None,
    report: Callable[[int, str], None],
) -> tuple[Shown, Shown]:
    try:
        return show.decoder(offset, key, value)
    except CorruptRecordError as exc:
        report(offset, exc.reason)
        return f"Error at offset {offset}, skipping. {exc.reason}", None


def _key(record: InternalRecord) -> Fields:
    return {"type": str(record.key_version), "data": record.key}


def _payload(record: InternalRecord, value: Value | None) -> Shown:
    if value is None:
        return DELETED
    return {**_versioned(record.value_version), "data": record.value or value}


def _versioned(version: int | None) -> dict[str, str]:
    return {"version": str(version)}


def _with_members(group: Fields) -> Fields:
    """Decode the members' bytes if consumers wrote them; others stay bytes."""
    members = [dict(member) for member in group["members"]]
    for member in members:
        for name, table in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
            try:
                decoded = decode_versioned(table, member[name])
                if decoded is not None:
                    member[name] = decoded
            except CorruptRecordError:
                continue
    return {**group, "members": members}


def _texts(part: Shown) -> Parts:
    if isinstance(part, str | bytes | memoryview):
        return [part]
    if isinstance(part, dict) and is_large(part.get("data")):
        before, after = _json({**part, "data": ""}).rsplit('""', 1)
        return [f'{before}"', Base64(part["data"]), f'"{after}']
    return [_json(part)]


def _json(value: Any) -> str:
    """Return JSON as Kafka's tool prints it: no spaces, bytes as base64."""
    return json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        default=lambda data: b64encode(data).decode(),
    )
