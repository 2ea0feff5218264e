"""The whole state of a topic in one Parquet file, so that no load reads a long history.

The rule: the rows are the segments, live ones and those removed inside their grace (with the
version and time of their removal), and the last writes. The rest is JSON in the file's metadata.
The name has the length and the CRC-32C of the bytes, and a file that does not match its name is not
a checkpoint. Most segments of a large state are in parts (`checkpoint_parts.py`), which the
metadata names: a checkpoint is complete if all its parts are intact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import google_crc32c
import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import (
    checkpoint_parts,
    commit_log_paths,
    parquet_tables,
    segment_entries,
)
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.commit import WriterTransaction
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, CheckpointName
from klog.connector.commit_log.format_versions import (
    ADOPT_FORMAT,
    FIRST_VERSION,
    MIN_FORMAT,
    REPAIR_FORMAT,
    RESTORE_FORMAT,
    check_format,
)
from klog.connector.commit_log.json_fields import Fields, check_text, check_type
from klog.connector.commit_log.live_segments import ROW_SCHEMA, VERSION_COLUMN, LiveSegments
from klog.connector.commit_log.parquet_tables import DAMAGE
from klog.connector.commit_log.restore_json import (
    hole_from_json,
    hole_to_json,
    past_restore_from_json,
    past_restore_to_json,
)
from klog.connector.commit_log.topic_state import REMOVED_SCHEMA, TopicState
from klog.errors import KlogError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_PARTITION
from klog.logformat.topic_partition import MAX_PARTITIONS

_KEY = b"klog"
_REMOVAL = {"version": "removed_version", "timestamp_ms": "removed_timestamp_ms"}
_WRITE, _WRITTEN = "write_id", "written_version"
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in ROW_SCHEMA]
    + [pa.field(name, pa.int64()) for name in _REMOVAL.values()]
    + [pa.field(_WRITE, pa.string()), pa.field(_WRITTEN, pa.int64())]
)
_TEXTS = ["codec", "origin"]
"""Columns of few values; the others are no smaller with a dictionary, and slower to read."""

_IDS_AT_ONCE = 2500
"""Arrow holds Python's lock while it converts these, so a commit of another thread waits."""

Pause = Callable[[], None]
ReadPart = Callable[[CheckpointName], bytes]


T = TypeVar("T")


class IncompleteCheckpointError(KlogError):
    """A part of a checkpoint is missing or not what its name says: an older one is tried."""


def encode_checkpoint(
    state: TopicState, parts: Sequence[Part] = (), pause: Pause = lambda: None
) -> tuple[CheckpointName, bytes]:
    """Encode a state, without the segments in its parts.

    Args:
        state: The state.
        parts: The parts of the checkpoint, in order of version.
        pause: Called between steps that hold Python's lock, so that other threads can run.

    Returns:
        The name that the file must have, and its bytes.
    """
    live = checkpoint_parts.rows_outside_parts(state.live.rows(), parts)
    pause()
    removed = state.removed.rename_columns(
        [_REMOVAL.get(name, name) for name in REMOVED_SCHEMA.names]
    )
    writes = _writes_table(state, pause)
    nullable = (
        table.cast(pa.schema([_SCHEMA.field(name) for name in table.column_names]))
        for table in (live, removed, writes)
    )
    rows = pa.concat_tables(nullable, promote_options="default")
    pause()
    file_format = _state_format(state)
    metadata: dict[str, Any] = {
        "version": state.version,
        "timestamp_ms": state.timestamp_ms,
        "topic_id": state.topic_id,
        "log_start": state.log_start,
        "log_end": state.log_end,
        "horizon": state.vacuum_version,
        "format": file_format,
        "since": FIRST_VERSION[file_format],
        "config": dict(state.config),
        "cleaned_to": [list(pair) for pair in state.cleaned_to.items()],
        "progress": [_transaction_to_json(writer) for writer in state.writer_transactions.values()],
        "parts": [part.to_json() for part in parts],
    }
    if state.holes:
        metadata["holes"] = [hole_to_json(hole) for hole in state.holes]
    if state.restores:
        metadata["restores"] = [past_restore_to_json(restore) for restore in state.restores]
    rows = rows.select(_SCHEMA.names).replace_schema_metadata({_KEY: json.dumps(metadata).encode()})
    data = parquet_tables.encode_table(rows, _TEXTS)
    return CheckpointName(state.version, len(data), google_crc32c.value(data)), data


def _writes_table(state: TopicState, pause: Pause) -> pa.Table:
    """Return the last writes as a table, built in slices."""
    ids, versions = list(state.writes), np.fromiter(state.writes.values(), np.int64)
    chunks = [pa.array([], pa.string())]
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        pause()
        chunks.append(pa.array(ids[begin : begin + _IDS_AT_ONCE], pa.string()))
    pause()
    return pa.table([pa.chunked_array(chunks), versions], names=[_WRITE, _WRITTEN])


def encode_part(rows: pa.Table, version: int) -> tuple[CheckpointName, bytes]:
    """Encode the segments of a part.

    Args:
        rows: The segments, with the version that added each.
        version: The version of the first checkpoint that names the part.

    Returns:
        The name that the file must have, and its bytes.
    """
    file_format = _format(rows)
    metadata = json.dumps({"format": file_format, "since": FIRST_VERSION[file_format]}).encode()
    data = parquet_tables.encode_table(rows.replace_schema_metadata({_KEY: metadata}), _TEXTS)
    return CheckpointName(version, len(data), google_crc32c.value(data)), data


def _state_format(state: TopicState) -> int:
    if state.restores:
        return RESTORE_FORMAT
    return REPAIR_FORMAT if state.holes else _format(state.live.rows())


def _format(rows: pa.Table) -> int:
    return MIN_FORMAT if segment_entries.are_format_1(rows) else ADOPT_FORMAT


def decode_parts(data: bytes) -> tuple[Part, ...]:
    """Return the parts that a checkpoint names, without reading its rows.

    Args:
        data: The bytes of the checkpoint, which are intact.

    Raises:
        UnsupportedFormatError: It needs a newer klog, or is not a checkpoint.
    """
    return _translate_errors(lambda: _head(parquet_tables.decode_schema(data)).parts)


def decode_checkpoint(
    data: bytes, read_part: ReadPart | None = None, topic: str | None = None
) -> TopicState:
    """Return the state of a checkpoint.

    Args:
        data: The bytes of the checkpoint, which are intact.
        read_part: Reads the bytes of a part; None if the checkpoint has none.
        topic: The topic that its segments must belong to; None allows any.

    Raises:
        UnsupportedFormatError: It needs a newer klog, or is not a checkpoint.
        IncompleteCheckpointError: A part is missing or not intact.
    """
    return _translate_errors(lambda: _decode(data, read_part, topic))


def _translate_errors(work: Callable[[], T]) -> T:
    try:
        return work()
    except DAMAGE as exc:
        raise UnsupportedFormatError(
            f"it is not a checkpoint: {type(exc).__name__}: {exc}"
        ) from exc


def _decode(data: bytes, read_part: ReadPart | None, topic: str | None) -> TopicState:
    rows = parquet_tables.decode_table(data)
    head = _head(rows.schema)
    tables = [
        segment_entries.with_optional_columns(
            rows.filter(pc.is_valid(rows[VERSION_COLUMN]))
        ).select(ROW_SCHEMA.names)
    ]
    tables += (_part_rows(part, read_part) for part in head.parts)
    live = pa.concat_tables(
        table.replace_schema_metadata(None).cast(ROW_SCHEMA) for table in tables
    )
    removed = rows.filter(pc.is_valid(rows["removed_version"])).select(["file", *_REMOVAL.values()])
    if not (
        segment_entries.are_segment_paths(live["file"], topic)
        and segment_entries.are_in_partition_directories(live)
        and segment_entries.are_segment_paths(removed["file"], topic)
    ):
        raise ValueError("it names a file that is not a segment of the topic")
    writes = rows.filter(pc.is_valid(rows[_WRITTEN]))
    ids, versions = writes[_WRITE].to_pylist(), writes[_WRITTEN].to_pylist()
    return replace(
        head.state,
        live=LiveSegments.of(live),
        removed=removed.rename_columns(REMOVED_SCHEMA.names)
        .replace_schema_metadata(None)
        .cast(REMOVED_SCHEMA),
        writes=MappingProxyType(dict(zip(ids, versions, strict=True))),
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """The metadata: a state without its rows, and its parts."""

    state: TopicState
    parts: tuple[Part, ...]


def _head(schema: pa.Schema) -> _Head:
    """Check all fields of the metadata, as the fields of a commit are checked."""
    fields = Fields(_metadata(schema))
    log_start, log_end = fields.numbers("log_start"), fields.numbers("log_end")
    if len(log_start) != len(log_end) or len(log_end) > MAX_PARTITIONS:
        raise ValueError(f"it has {len(log_start)} log starts and {len(log_end)} log ends")
    parts = tuple(Part.from_json(part) for part in fields.objects("parts"))
    if any(before.end_version > after.start_version for before, after in pairwise(parts)):
        raise ValueError("two of its parts have the same versions")
    config = fields.object("config") or {}
    state = TopicState(
        version=fields.number("version", MAX_VERSION),
        timestamp_ms=fields.number("timestamp_ms"),
        topic_id=fields.text("topic_id"),
        log_start=log_start,
        log_end=log_end,
        vacuum_version=fields.number("horizon", MAX_VERSION),
        config=MappingProxyType(
            {
                check_text("config", name): check_text("config", value)
                for name, value in config.items()
            }
        ),
        cleaned_to=MappingProxyType(fields.pairs("cleaned_to", MAX_PARTITION)),
        writer_transactions=MappingProxyType(
            {
                writer.name: writer
                for writer in map(_transaction_from_json, fields.objects("progress"))
            }
        ),
        holes=tuple(map(hole_from_json, fields.objects("holes"))),
        restores=tuple(
            past_restore_from_json(Fields(restore)) for restore in fields.objects("restores")
        ),
    )
    return _Head(state, parts)


def _transaction_to_json(writer: WriterTransaction) -> dict[str, Any]:
    return {
        "name": writer.name,
        "batch_id": writer.batch_id,
        "query_id": writer.query_id,
        "run_id": writer.run_id,
        "superseded": writer.superseded,
    }


def _transaction_from_json(json_object: Mapping[str, Any]) -> WriterTransaction:
    fields = Fields(json_object)
    return WriterTransaction(
        fields.text("name"),
        fields.number("batch_id"),
        fields.text("query_id"),
        fields.text("run_id"),
        fields.texts("superseded"),
    )


def _metadata(schema: pa.Schema) -> dict[str, Any]:
    fields = check_type("klog", json.loads((schema.metadata or {})[_KEY]), dict)
    check_format(fields)
    return dict(fields)


def _part_rows(part: Part, read_part: ReadPart | None) -> pa.Table:
    """Read the segments of one part."""
    if read_part is None:
        raise ValueError(f"its part {part.name} cannot be read here")
    try:
        data = read_part(part.name)
    except FileNotFoundError as exc:
        raise IncompleteCheckpointError(f"part {part.name} is missing") from exc
    if not commit_log_paths.is_intact(part.name, data):
        raise IncompleteCheckpointError(f"part {part.name} is torn or was changed")
    rows = parquet_tables.decode_table(data)
    _metadata(rows.schema)
    if len(rows) != part.rows:
        raise ValueError(f"part {part.name} has {len(rows)} segments, not {part.rows}")
    return segment_entries.with_optional_columns(rows).select(ROW_SCHEMA.names)
