"""Run a golden case of the slice through klog's reader.

A case is a JSON object: `task` is the input; `rows` or `error` is the result. docs/slice.md
describes the fields.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from klog.connector.options.read_columns import COLUMNS
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.slices import UNKNOWN, Slice, SliceChangedError
from klog.connector.store.local_store import LocalStore
from klog.errors import CorruptFileError, UnsupportedFormatError
from tests.support.project import PROJECT

FOLDER = Path(__file__).parent / "slice"


class ReplannedError(Exception):
    """A slice must be planned again, because its file has changed."""


def run_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case; return its result."""
    previous = Path.cwd()
    os.chdir(PROJECT)  # Its paths are relative to the project.
    try:
        return run_task([with_identity(values) for values in case["task"]])
    finally:
        os.chdir(previous)


def run_task(task: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Run a task whose files are known; return its result."""
    reader = SliceReader(COLUMNS, _replan)
    try:
        return {"rows": [row for rows in reader.read(task) for row in _rows(rows)]}
    except CorruptFileError:
        return {"error": "corrupt"}
    except UnsupportedFormatError:
        return {"error": "format"}
    except ReplannedError:
        return {"error": "changed"}


def row_of(
    offset: int,
    timestamp_ms: int,
    timestamp_type: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> dict[str, Any]:
    """Return a row of a case."""
    return {
        "offset": offset,
        "timestampUs": timestamp_ms * 1000,
        "timestampType": timestamp_type,
        "key": _text(key),
        "value": _text(value),
        "headers": [[name, _text(content)] for name, content in headers] or None,
    }


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    assert batch.schema.names == list(COLUMNS)
    times = batch.column("timestamp").cast("int64").to_pylist()
    columns = batch.drop_columns(["timestamp"]).to_pylist()
    rows = []
    for row, timestamp_us in zip(columns, times, strict=True):
        headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
        assert timestamp_us % 1000 == 0
        rows.append(
            row_of(
                row["offset"], timestamp_us // 1000, row["timestampType"], row["key"],
                row["value"], headers,
            )
        )  # fmt: skip
    return rows


def with_identity(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's fields with the identity and stamp of a broker's file here."""
    if values["isCommitted"]:
        return dict(values)
    file = LocalStore().open(values["path"])
    file.close()
    is_growing = values["fileSizeBytes"] < 0
    return {**values, "identity": file.identity, "stamp": "" if is_growing else file.stamp}


def _replan(slice_: Slice) -> tuple[int, list[Slice]]:
    """Plan as if nothing had changed since: a segment of a commit as a whole, without its index.

    A broker's file that has changed ends the case.
    """
    if slice_.is_committed:
        whole = replace(
            slice_, start_position=0, end_position=slice_.segment_size_bytes, first_offset=UNKNOWN,
            index_path="", crc32c=UNKNOWN,
        )  # fmt: skip
        return 0, [whole]
    if isinstance(sys.exc_info()[1], SliceChangedError | FileNotFoundError):
        raise ReplannedError
    return 0, [slice_]


def _text(data: bytes | None) -> Any:
    """Return bytes as text, or as `{"base64": ...}` if they are not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
