"""The Parquet file of a commit's added and removed segments, if they are many.

The rule: a commit whose JSON would be larger than 1 MiB names a sidecar, which is put on the store
before the commit. It has the segments of `add`, `remove` and `forget` in their order, one row each.
Its name has the version, a hash of the write id, its length and its CRC-32C. A commit whose sidecar
is missing, or is not what its name says, cannot be read, and nothing replaces it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import google_crc32c
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import commit_json, parquet_tables, segment_entries
from klog.connector.commit_log.commit import Actions, Commit
from klog.connector.commit_log.commit_log_paths import SidecarName, is_intact
from klog.connector.commit_log.file_size_limits import MAX_TABLE_BYTES
from klog.connector.commit_log.format_versions import FIRST_VERSION, check_format
from klog.connector.commit_log.json_fields import check_segment_file
from klog.connector.commit_log.parquet_tables import DAMAGE
from klog.errors import KlogError, UnsupportedFormatError

MAX_JSON_BYTES = 1 << 20
"""A commit that is larger has a sidecar."""
_KEY = b"klog"
_TEXTS = ["codec", "origin", "action"]
"""Columns of few values have a dictionary. If file names had one, a reader would take the file for
a small one that holds very much, and read it the slow way (`parquet_tables.py`)."""
_ACTION = pa.field("action", pa.string())
_NULLABLE = pa.schema([field.with_nullable(True) for field in segment_entries.SCHEMA])


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The file of a sidecar."""

    name: SidecarName
    data: bytes


def encode_sidecar(commit: Commit) -> Sidecar:
    """Return the sidecar of a commit.

    Args:
        commit: The commit with all its actions.

    Raises:
        KlogError: The sidecar would be larger than readers accept.
    """
    actions = commit.actions
    rows_count = len(actions.add) + len(actions.remove) + len(actions.purge)
    if rows_count > parquet_tables.MAX_ROWS:
        raise _too_large(commit, f"{rows_count} segments", f"{parquet_tables.MAX_ROWS}")
    added = segment_entries.to_table(actions.add).cast(_NULLABLE)
    file_tables = [
        pa.table({"file": pa.array(files, pa.string())}).append_column(
            _ACTION, pa.array([action] * len(files), pa.string())
        )
        for action, files in (("remove", actions.remove), ("forget", actions.purge))
    ]
    added = added.append_column(_ACTION, pa.array(["add"] * len(added), pa.string()))
    rows = pa.concat_tables([added, *file_tables], promote_options="default")
    metadata = json.dumps(
        {"format": actions.format, "since": FIRST_VERSION[actions.format]}
    ).encode()
    data = parquet_tables.encode_table(rows.replace_schema_metadata({_KEY: metadata}), _TEXTS)
    if len(data) > MAX_TABLE_BYTES:
        raise _too_large(commit, f"a sidecar of {len(data)} bytes", f"{MAX_TABLE_BYTES}")
    write = sha256(commit.write_id.encode()).hexdigest()[:16]
    name = SidecarName(commit.version, write, len(data), google_crc32c.value(data))
    return Sidecar(name, data)


def _too_large(commit: Commit, size: str, limit: str) -> KlogError:
    return KlogError(
        f"commit {commit.version} ({commit.operation}) would have {size}, at most {limit} are "
        "read; nothing was committed. Write it in several commits"
    )


def decode_sidecar(commit: Commit, name: SidecarName, data: bytes, topic: str) -> Commit:
    """Return the commit with the actions of its sidecar, whose bytes may be anything.

    Args:
        commit: The commit as its own file says it.
        name: The name of the sidecar.
        data: The bytes of the sidecar.
        topic: The topic that the segments must belong to.

    Raises:
        UnsupportedFormatError: The bytes are not those of the name, need a newer klog, or are not a
            sidecar.
    """
    if not is_intact(name, data):
        raise UnsupportedFormatError(
            f"it has {len(data)} bytes: its length or its CRC-32C is not the one in its name"
        )
    try:
        rows = parquet_tables.decode_table(data)
        check_format(json.loads((rows.schema.metadata or {})[_KEY]))
        actions = _actions(commit.actions, rows, topic)
    except DAMAGE as exc:
        raise UnsupportedFormatError(f"it is not a sidecar: {type(exc).__name__}: {exc}") from exc
    return replace(commit, actions=actions, size_bytes=commit.size_bytes + len(data))


def _actions(actions: Actions, rows: pa.Table, topic: str) -> Actions:
    add = segment_entries.with_optional_columns(
        rows.filter(pc.equal(rows["action"], "add"))
    ).select(segment_entries.SCHEMA.names)
    columns: list[list[Any]] = [column.to_pylist() for column in add.columns]
    names = [segment_entries.JSON_NAMES[name] for name in add.column_names]
    added = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return replace(
        actions,
        add=tuple(segment_entries.entry_from_json(entry, topic) for entry in added),
        remove=_files(rows, "remove", topic),
        purge=_files(rows, "forget", topic),
    )


def _files(rows: pa.Table, action: str, topic: str) -> tuple[str, ...]:
    files = rows.filter(pc.equal(rows["action"], action))["file"].to_pylist()
    return tuple(check_segment_file(file, topic) for file in files)


def with_sidecar_if_large(commit: Commit) -> tuple[Commit, Sidecar | None]:
    """Return a commit with its size, and its sidecar if it is too large to be without.

    Args:
        commit: The commit with all its actions.

    Returns:
        The commit, and its sidecar; None if it needs no sidecar.
    """
    data = commit_json.encode_commit(commit)
    if len(data) <= MAX_JSON_BYTES:
        return replace(commit, size_bytes=len(data)), None
    sidecar = encode_sidecar(commit)
    return replace(commit, sidecar=sidecar.name, size_bytes=len(sidecar.data)), sidecar
