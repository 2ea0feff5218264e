"""The whole state of a topic in one Parquet file, so that no load reads a long history.

The rule: the rows are the segments, live ones and those removed inside their grace (with the
version and time of their removal), and the last writes; all else is JSON in the file's metadata.
The name carries the length and the CRC-32C of the bytes, and what does not match its name is no
checkpoint. Of a large state, most segments stand in parts (`checkpoint_parts.py`), which the
metadata names: a checkpoint one of whose parts is not whole is not whole.
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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from klog.connector.commit_log import checkpoint_parts, parquet_tables, segment_entries
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.commit import WriterTransaction
from klog.connector.commit_log.commit_json import hole_from_json, hole_to_json
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, CheckpointName
from klog.connector.commit_log.format_versions import (
    ADOPT_FORMAT,
    FIRST_VERSION,
    MAX_FORMAT,
    MIN_FORMAT,
    check_format,
)
from klog.connector.commit_log.json_fields import Fields, check_number, check_text, check_type
from klog.connector.commit_log.live_segments import ROW_SCHEMA, VERSION_COLUMN, LiveSegments
from klog.connector.commit_log.parquet_tables import DAMAGE
from klog.connector.commit_log.topic_state import REMOVED_SCHEMA, TopicState
from klog.connector.topic_partition import MAX_PARTITIONS
from klog.errors import KlogError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_PARTITION

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
"""Arrow holds Python's lock while it takes these over, so a commit beside it waits that long."""

Pause = Callable[[], None]
ReadPart = Callable[[CheckpointName], bytes]


T = TypeVar("T")


class IncompleteCheckpointError(KlogError):
    """A part of a checkpoint is not there, or not what its name says: an older one is tried."""


def encode_checkpoint(
    state: TopicState, parts: Sequence[Part] = (), pause: Pause = lambda: None
) -> tuple[CheckpointName, bytes]:
    """Give a state's file, without the segments that its parts have, and the name it must have.

    `pause` is called between pieces of work that hold Python's lock, for whoever waits for it.
    """
    live = checkpoint_parts.rows_outside_parts(state.live.rows(), parts)
    pause()
    removed = state.removed.rename_columns(
        [_REMOVAL.get(name, name) for name in REMOVED_SCHEMA.names]
    )
    writes = _writes_of(state, pause)
    nullable = (
        table.cast(pa.schema([_SCHEMA.field(name) for name in table.column_names]))
        for table in (live, removed, writes)
    )
    rows = pa.concat_tables(nullable, promote_options="default")
    pause()
    form = MAX_FORMAT if state.holes else _format(state.live.rows())
    metadata: dict[str, Any] = {
        "version": state.version,
        "timestamp_ms": state.timestamp_ms,
        "topic_id": state.topic_id,
        "log_start": state.log_start,
        "log_end": state.log_end,
        "horizon": state.vacuum_version,
        "format": form,
        "since": FIRST_VERSION[form],
        "config": dict(state.config),
        "cleaned_to": [list(pair) for pair in state.cleaned_to.items()],
        "progress": [_transaction_to_json(writer) for writer in state.writer_transactions.values()],
        "parts": [part.to_json() for part in parts],
    }
    if state.holes:
        metadata["holes"] = [hole_to_json(hole) for hole in state.holes]
    rows = rows.select(_SCHEMA.names).replace_schema_metadata({_KEY: json.dumps(metadata).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", use_dictionary=_TEXTS)
    data = sink.getvalue().to_pybytes()
    return CheckpointName(state.version, len(data), google_crc32c.value(data)), data


def _writes_of(state: TopicState, pause: Pause) -> pa.Table:
    """Give the last writes, made a piece at a time."""
    ids, versions = list(state.writes), np.fromiter(state.writes.values(), np.int64)
    pieces = [pa.array([], pa.string())]
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        pause()
        pieces.append(pa.array(ids[begin : begin + _IDS_AT_ONCE], pa.string()))
    pause()
    return pa.table([pa.chunked_array(pieces), versions], names=[_WRITE, _WRITTEN])


def encode_part(rows: pa.Table, version: int) -> tuple[CheckpointName, bytes]:
    """Give the file of a part that a checkpoint of `version` is the first to name."""
    form = _format(rows)
    said = json.dumps({"format": form, "since": FIRST_VERSION[form]}).encode()
    sink = pa.BufferOutputStream()
    rows = rows.replace_schema_metadata({_KEY: said})
    pq.write_table(rows, sink, compression="zstd", use_dictionary=_TEXTS)
    data = sink.getvalue().to_pybytes()
    return CheckpointName(version, len(data), google_crc32c.value(data)), data


def _format(rows: pa.Table) -> int:
    return MIN_FORMAT if segment_entries.are_format_1(rows) else ADOPT_FORMAT


def is_intact(name: CheckpointName, data: bytes) -> bool:
    """Tell whether these are the bytes that the name speaks of."""
    return len(data) == name.size_bytes and google_crc32c.value(data) == name.crc32c


def read_parts(data: bytes) -> tuple[Part, ...]:
    """Read which parts a checkpoint names, without its rows; the bytes are whole."""
    return _in_words(lambda: _head(parquet_tables.read_schema(data)).parts)


def decode_checkpoint(
    data: bytes, read_part: ReadPart | None = None, topic: str | None = None
) -> TopicState:
    """Read a checkpoint whose bytes are whole; `read_part` gives the bytes of its parts.

    It names segments of `topic` alone, if that is given. Raises `UnsupportedFormatError` for one of
    a newer format and for a file that is none of klog's, `IncompleteCheckpointError` where a part
    is not there or not whole.
    """
    return _in_words(lambda: _decode(data, read_part, topic))


def _in_words(work: Callable[[], T]) -> T:
    try:
        return work()
    except DAMAGE as exc:
        raise UnsupportedFormatError(f"it is no checkpoint: {type(exc).__name__}: {exc}") from exc


def _decode(data: bytes, read_part: ReadPart | None, topic: str | None) -> TopicState:
    rows = parquet_tables.read_table(data)
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
        raise ValueError("it names a file that is no segment of the topic")
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
    """What the metadata say: a state without its rows, and its parts."""

    state: TopicState
    parts: tuple[Part, ...]


def _head(schema: pa.Schema) -> _Head:
    """Check all that the metadata say, as the fields of a commit are checked."""
    said = Fields(_said(schema))
    log_start, log_end = said.numbers("log_start"), said.numbers("log_end")
    if len(log_start) != len(log_end) or len(log_end) > MAX_PARTITIONS:
        raise ValueError(f"it has {len(log_start)} log starts and {len(log_end)} log ends")
    parts = tuple(Part.from_json(one) for one in said.objects("parts"))
    if any(before.end_version > after.start_version for before, after in pairwise(parts)):
        raise ValueError("two of its parts have the same versions")
    config = said.object("config") or {}
    pairs = [check_type("cleaned_to", pair, list) for pair in said.values("cleaned_to")]
    state = TopicState(
        version=said.number("version", MAX_VERSION),
        timestamp_ms=said.number("timestamp_ms"),
        topic_id=said.text("topic_id"),
        log_start=log_start,
        log_end=log_end,
        vacuum_version=said.number("horizon", MAX_VERSION),
        config=MappingProxyType(
            {
                check_text("config", name): check_text("config", value)
                for name, value in config.items()
            }
        ),
        cleaned_to=MappingProxyType(
            {
                check_number("cleaned_to", k, MAX_PARTITION): check_number("cleaned_to", v)
                for k, v in pairs
            }
        ),
        writer_transactions=MappingProxyType(
            {one.name: one for one in map(_transaction_from_json, said.objects("progress"))}
        ),
        holes=tuple(map(hole_from_json, said.objects("holes"))),
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


def _transaction_from_json(said: Mapping[str, Any]) -> WriterTransaction:
    fields = Fields(said)
    return WriterTransaction(
        fields.text("name"),
        fields.number("batch_id"),
        fields.text("query_id"),
        fields.text("run_id"),
        fields.texts("superseded"),
    )


def _said(schema: pa.Schema) -> dict[str, Any]:
    said = check_type("klog", json.loads((schema.metadata or {})[_KEY]), dict)
    check_format(said)
    return dict(said)


def _part_rows(part: Part, read_part: ReadPart | None) -> pa.Table:
    """Read the segments of one part."""
    if read_part is None:
        raise ValueError(f"its part {part.name} is not at hand")
    try:
        data = read_part(part.name)
    except FileNotFoundError as exc:
        raise IncompleteCheckpointError(f"part {part.name} is not there") from exc
    if not is_intact(part.name, data):
        raise IncompleteCheckpointError(f"part {part.name} is torn or was changed")
    rows = parquet_tables.read_table(data)
    _said(rows.schema)
    if len(rows) != part.rows:
        raise ValueError(f"part {part.name} has {len(rows)} segments, not {part.rows}")
    return segment_entries.with_optional_columns(rows).select(ROW_SCHEMA.names)
