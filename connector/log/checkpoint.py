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
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from klog.connector.log import checkpoint_parts, entries, parquet
from klog.connector.log.checkpoint_parts import Part
from klog.connector.log.commit import (
    ADOPT_FORMAT,
    FORMAT,
    LEAST_FORMAT,
    MAX_PARTITIONS,
    SINCE,
    Progress,
    check_format,
    hole_from_json,
    hole_to_json,
)
from klog.connector.log.json_fields import Fields, as_kind, number_of, text_of
from klog.connector.log.live import ROWS, VERSION, Live
from klog.connector.log.parquet import DAMAGE
from klog.connector.log.paths import MAX_VERSION, CheckpointName
from klog.connector.log.state import REMOVED, State
from klog.errors import KlogError, UnsupportedFormatError
from klog.logformat.names import MAX_PARTITION

_KEY = b"klog"
_PLAIN = ("version", "timestamp_ms", "topic_id", "log_start", "log_end", "horizon")
_REMOVAL = {"version": "removed_version", "timestamp_ms": "removed_timestamp_ms"}
_WRITE, _WRITTEN = "write_id", "written_version"
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in ROWS]
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


class NotWholeError(KlogError):
    """A part of a checkpoint is not there, or not what its name says: an older one is tried."""


def encode(
    state: State, parts: Sequence[Part] = (), pause: Pause = lambda: None
) -> tuple[CheckpointName, bytes]:
    """Give a state's file, without the segments that its parts have, and the name it must have.

    `pause` is called between pieces of work that hold Python's lock, for whoever waits for it.
    """
    live = checkpoint_parts.beside(state.live.rows(), parts)
    pause()
    removed = state.removed.rename_columns([_REMOVAL.get(name, name) for name in REMOVED.names])
    writes = _writes_of(state, pause)
    nullable = (
        table.cast(pa.schema([_SCHEMA.field(name) for name in table.column_names]))
        for table in (live, removed, writes)
    )
    rows = pa.concat_tables(nullable, promote_options="default")
    pause()
    form = FORMAT if state.holes else _format(state.live.rows())
    said: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN}
    said |= {
        "format": form,
        "since": SINCE[form],
        "config": dict(state.config),
        "cleaned_to": [list(pair) for pair in state.cleaned_to.items()],
        "progress": [asdict(one) for one in state.progress.values()],
        "parts": [part.to_json() for part in parts],
    }
    if state.holes:
        said["holes"] = [hole_to_json(hole) for hole in state.holes]
    rows = rows.select(_SCHEMA.names).replace_schema_metadata({_KEY: json.dumps(said).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", use_dictionary=_TEXTS)
    data = sink.getvalue().to_pybytes()
    return CheckpointName(state.version, len(data), google_crc32c.value(data)), data


def _writes_of(state: State, pause: Pause) -> pa.Table:
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
    said = json.dumps({"format": form, "since": SINCE[form]}).encode()
    sink = pa.BufferOutputStream()
    rows = rows.replace_schema_metadata({_KEY: said})
    pq.write_table(rows, sink, compression="zstd", use_dictionary=_TEXTS)
    data = sink.getvalue().to_pybytes()
    return CheckpointName(version, len(data), google_crc32c.value(data)), data


def _format(rows: pa.Table) -> int:
    return LEAST_FORMAT if entries.are_plain(rows) else ADOPT_FORMAT


def is_whole(name: CheckpointName, data: bytes) -> bool:
    """Tell whether these are the bytes that the name speaks of."""
    return len(data) == name.size_bytes and google_crc32c.value(data) == name.crc32c


def parts_of(data: bytes) -> tuple[Part, ...]:
    """Read which parts a checkpoint names, without its rows; the bytes are whole."""
    return _in_words(lambda: _head(parquet.read_schema(data)).parts)


def decode(data: bytes, read_part: ReadPart | None = None, topic: str | None = None) -> State:
    """Read a checkpoint whose bytes are whole; `read_part` gives the bytes of its parts.

    It names segments of `topic` alone, if that is given. Raises `UnsupportedFormatError` for one of
    a newer format and for a file that is none of klog's, `NotWholeError` where a part is not there
    or not whole.
    """
    return _in_words(lambda: _decode(data, read_part, topic))


def _in_words(work: Callable[[], T]) -> T:
    try:
        return work()
    except DAMAGE as exc:
        raise UnsupportedFormatError(f"it is no checkpoint: {type(exc).__name__}: {exc}") from exc


def _decode(data: bytes, read_part: ReadPart | None, topic: str | None) -> State:
    rows = parquet.read_table(data)
    head = _head(rows.schema)
    tables = [entries.completed(rows.filter(pc.is_valid(rows[VERSION]))).select(ROWS.names)]
    tables += (_part_rows(part, read_part) for part in head.parts)
    live = pa.concat_tables(table.replace_schema_metadata(None).cast(ROWS) for table in tables)
    removed = rows.filter(pc.is_valid(rows["removed_version"])).select(["file", *_REMOVAL.values()])
    if not (
        entries.are_paths(live["file"], topic)
        and entries.are_of_partitions(live)
        and entries.are_paths(removed["file"], topic)
    ):
        raise ValueError("it names a file that is no segment of the topic")
    writes = rows.filter(pc.is_valid(rows[_WRITTEN]))
    ids, versions = writes[_WRITE].to_pylist(), writes[_WRITTEN].to_pylist()
    return replace(
        head.state,
        live=Live.of(live),
        removed=removed.rename_columns(REMOVED.names).replace_schema_metadata(None).cast(REMOVED),
        writes=MappingProxyType(dict(zip(ids, versions, strict=True))),
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """What the metadata say: a state without its rows, and its parts."""

    state: State
    parts: tuple[Part, ...]


def _head(schema: pa.Schema) -> _Head:
    """Check all that the metadata say, as the fields of a commit are checked."""
    said = Fields(_said(schema))
    log_start, log_end = said.numbers("log_start"), said.numbers("log_end")
    if len(log_start) != len(log_end) or len(log_end) > MAX_PARTITIONS:
        raise ValueError(f"it has {len(log_start)} log starts and {len(log_end)} log ends")
    parts = tuple(Part.from_json(one) for one in said.objects("parts"))
    if any(before.end > after.first for before, after in pairwise(parts)):
        raise ValueError("two of its parts have the same versions")
    config = said.object("config") or {}
    pairs = [as_kind("cleaned_to", pair, list) for pair in said.values("cleaned_to")]
    state = State(
        version=said.number("version", MAX_VERSION),
        timestamp_ms=said.number("timestamp_ms"),
        topic_id=said.text("topic_id"),
        log_start=log_start,
        log_end=log_end,
        horizon=said.number("horizon", MAX_VERSION),
        config=MappingProxyType(
            {text_of("config", name): text_of("config", value) for name, value in config.items()}
        ),
        cleaned_to=MappingProxyType(
            {
                number_of("cleaned_to", k, MAX_PARTITION): number_of("cleaned_to", v)
                for k, v in pairs
            }
        ),
        progress=MappingProxyType(
            {one.name: one for one in map(_progress, said.objects("progress"))}
        ),
        holes=tuple(map(hole_from_json, said.objects("holes"))),
    )
    return _Head(state, parts)


def _progress(said: Mapping[str, Any]) -> Progress:
    fields = Fields(said)
    return Progress(
        fields.text("name"),
        fields.number("batch_id"),
        fields.text("query_id"),
        fields.text("run_id"),
        fields.texts("superseded"),
    )


def _said(schema: pa.Schema) -> dict[str, Any]:
    said = as_kind("klog", json.loads((schema.metadata or {})[_KEY]), dict)
    check_format(said)
    return dict(said)


def _part_rows(part: Part, read_part: ReadPart | None) -> pa.Table:
    """Read the segments of one part."""
    if read_part is None:
        raise ValueError(f"its part {part.name} is not at hand")
    try:
        data = read_part(part.name)
    except FileNotFoundError as exc:
        raise NotWholeError(f"part {part.name} is not there") from exc
    if not is_whole(part.name, data):
        raise NotWholeError(f"part {part.name} is torn or was changed")
    rows = parquet.read_table(data)
    _said(rows.schema)
    if len(rows) != part.rows:
        raise ValueError(f"part {part.name} has {len(rows)} segments, not {part.rows}")
    return entries.completed(rows).select(ROWS.names)
