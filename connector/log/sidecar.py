"""What a commit adds and takes out, in a Parquet file beside it, where that is very much.

The rule: a commit whose JSON would be larger than 1 MiB names a sidecar, which is on the store
before the commit is, and which has the segments of `add`, `remove` and `forget`, in their order, a
row each. Its name says the version, the write, its length and its CRC-32C: a commit whose sidecar
is not there, or not what its name says, cannot be read, and nothing stands in for it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from klog.connector.log import entries, parquet
from klog.connector.log.commit import SINCE, Actions, Commit, check_format
from klog.connector.log.json_fields import segment_file_of
from klog.connector.log.max_sizes import MAX_TABLE_BYTES
from klog.connector.log.parquet import DAMAGE
from klog.connector.log.paths import SidecarName
from klog.errors import KlogError, UnsupportedFormatError

MOST_JSON_BYTES = 1 << 20
"""A commit that is larger has a sidecar."""
_KEY = b"klog"
_TEXTS = ["codec", "origin", "action"]
"""Columns of few values have a dictionary. With one of file names, a reader would take it for a
small file that holds very much, and read it the slow way (`parquet.py`)."""
_ACTION = pa.field("action", pa.string())
_NULLABLE = pa.schema([field.with_nullable(True) for field in entries.SCHEMA])


def encode(commit: Commit) -> tuple[SidecarName, bytes]:
    """Give what of a commit goes into its sidecar, and the name that this must have.

    Raises `KlogError` for one that no reader would take.
    """
    actions = commit.actions
    rows_count = len(actions.add) + len(actions.remove) + len(actions.forget)
    if rows_count > parquet.MOST_ROWS:
        raise _too_large(commit, f"{rows_count} segments", f"{parquet.MOST_ROWS}")
    added = entries.table_of(actions.add).cast(_NULLABLE)
    others = [
        pa.table({"file": pa.array(files, pa.string())}).append_column(
            _ACTION, pa.array([action] * len(files), pa.string())
        )
        for action, files in (("remove", actions.remove), ("forget", actions.forget))
    ]
    added = added.append_column(_ACTION, pa.array(["add"] * len(added), pa.string()))
    rows = pa.concat_tables([added, *others], promote_options="default")
    said = json.dumps({"format": actions.format, "since": SINCE[actions.format]}).encode()
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows.replace_schema_metadata({_KEY: said}), sink, compression="zstd", use_dictionary=_TEXTS
    )
    data = sink.getvalue().to_pybytes()
    if len(data) > MAX_TABLE_BYTES:
        raise _too_large(commit, f"a sidecar of {len(data)} bytes", f"{MAX_TABLE_BYTES}")
    write = sha256(commit.write_id.encode()).hexdigest()[:16]
    return SidecarName(commit.version, write, len(data), google_crc32c.value(data)), data


def _too_large(commit: Commit, has: str, most: str) -> KlogError:
    return KlogError(
        f"commit {commit.version} ({commit.operation}) would have {has}, at most {most} are read; "
        "nothing was committed. Write it in several commits"
    )


def decode(commit: Commit, name: SidecarName, data: bytes, topic: str) -> Commit:
    """Give the commit with what its sidecar says, which may be anything.

    Raises `UnsupportedFormatError` for bytes that are not those that the name speaks of, that are
    of a newer format, or no sidecar.
    """
    if len(data) != name.size_bytes or google_crc32c.value(data) != name.crc32c:
        raise UnsupportedFormatError(
            f"it has {len(data)} bytes, or others than were written: its length or its CRC-32C is "
            "not the one in its name"
        )
    try:
        rows = parquet.read_table(data)
        check_format(json.loads((rows.schema.metadata or {})[_KEY]))
        actions = _actions(commit.actions, rows, topic)
    except DAMAGE as exc:
        raise UnsupportedFormatError(f"it is no sidecar: {type(exc).__name__}: {exc}") from exc
    return replace(commit, actions=actions, size_bytes=commit.size_bytes + len(data))


def _actions(actions: Actions, rows: pa.Table, topic: str) -> Actions:
    add = entries.completed(rows.filter(pc.equal(rows["action"], "add"))).select(
        entries.SCHEMA.names
    )
    columns: list[list[Any]] = [column.to_pylist() for column in add.columns]
    names = [entries.JSON_NAMES[name] for name in add.column_names]
    added = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return replace(
        actions,
        add=tuple(entries.from_json(entry, topic) for entry in added),
        remove=_files(rows, "remove", topic),
        forget=_files(rows, "forget", topic),
    )


def _files(rows: pa.Table, action: str, topic: str) -> tuple[str, ...]:
    files = rows.filter(pc.equal(rows["action"], action))["file"].to_pylist()
    return tuple(segment_file_of(file, topic) for file in files)
