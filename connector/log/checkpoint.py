"""The whole state of a topic in one Parquet file, so that no load reads a long history.

The rule: the rows are the segments, live ones and those removed inside their grace (with the
version and time of their removal); all else is JSON in the file's metadata. The name carries the
length and the CRC-32C of the bytes, and what does not match its name is no checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from klog.connector.log import entries
from klog.connector.log.commit import FORMAT, SINCE, Progress, check_format
from klog.connector.log.paths import CheckpointName
from klog.connector.log.state import REMOVED, State
from klog.errors import UnsupportedFormatError

_KEY = b"klog"
_PLAIN = ("version", "timestamp_ms", "topic_id", "log_start", "log_end", "horizon")
_REMOVAL = {"version": "removed_version", "timestamp_ms": "removed_timestamp_ms"}
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in entries.SCHEMA]
    + [pa.field(name, pa.int64()) for name in _REMOVAL.values()]
)


def encode(state: State) -> tuple[CheckpointName, bytes]:
    """Give a state's file and the name that it must have."""
    removed_names = [_REMOVAL.get(name, name) for name in REMOVED.names]
    rows = pa.concat_tables(
        [
            state.segments.cast(_part_of(entries.SCHEMA.names)),
            state.removed.rename_columns(removed_names).cast(_part_of(removed_names)),
        ],
        promote_options="default",
    )
    said: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN}
    said |= {
        "format": FORMAT,
        "since": SINCE,
        "config": dict(state.config),
        "cleaned_to": [list(pair) for pair in state.cleaned_to.items()],
        "writes": [list(pair) for pair in state.writes.items()],
        "progress": [asdict(one) for one in state.progress.values()],
    }
    rows = rows.select(_SCHEMA.names).replace_schema_metadata({_KEY: json.dumps(said).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    return CheckpointName(state.version, len(data), google_crc32c.value(data)), data


def is_whole(name: CheckpointName, data: bytes) -> bool:
    """Tell whether these are the bytes that the name speaks of."""
    return len(data) == name.size_bytes and google_crc32c.value(data) == name.crc32c


def decode(data: bytes) -> State:
    """Read a checkpoint whose bytes are whole.

    Raises `UnsupportedFormatError` for one of a newer format and for a file that is none of klog's.
    """
    try:
        rows = pq.read_table(pa.BufferReader(data), use_threads=False)
        said = json.loads((rows.schema.metadata or {})[_KEY])
        check_format(said)
        return _state(rows, said)
    except (pa.ArrowException, KeyError, ValueError, TypeError, AttributeError) as exc:
        raise UnsupportedFormatError(f"it is no checkpoint: {type(exc).__name__}: {exc}") from exc


def _state(rows: pa.Table, said: Mapping[str, Any]) -> State:
    is_live = pc.is_null(rows["removed_version"])
    segments = rows.filter(is_live).select(entries.SCHEMA.names)
    removed = rows.filter(pc.invert(is_live)).select(["file", *_REMOVAL.values()])
    plain = {name: said[name] for name in _PLAIN}
    plain |= {name: tuple(said[name]) for name in ("log_start", "log_end")}
    progress = (
        Progress(**{**one, "superseded": tuple(one["superseded"])}) for one in said["progress"]
    )
    return State(
        **plain,
        config=MappingProxyType(dict(said["config"])),
        cleaned_to=MappingProxyType({int(k): int(v) for k, v in said["cleaned_to"]}),
        segments=segments.replace_schema_metadata(None).cast(entries.SCHEMA),
        removed=removed.rename_columns(REMOVED.names).replace_schema_metadata(None).cast(REMOVED),
        progress=MappingProxyType({one.name: one for one in progress}),
        writes=MappingProxyType({str(k): int(v) for k, v in said["writes"]}),
    )


def _part_of(names: list[str]) -> pa.Schema:
    return pa.schema([_SCHEMA.field(name) for name in names])
