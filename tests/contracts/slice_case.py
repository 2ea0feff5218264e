"""A golden case of the slice: its files, its task and its rows; what the files of cases share.

The rule: rows are never computed by klog. They come from the records that a case's files are made
of, or from the account of the broker's own consumer (tests/golden). Paths are relative to the
project's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import google_crc32c

from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.slices import UNKNOWN, Slice
from tests.connector.log_dirs import entries_of, offset_index
from tests.contracts.slice_runner import FOLDER, row_of
from tests.support.batch_bytes import (
    Record,
    batch,
)
from tests.support.project import PROJECT

FILES = FOLDER / "files"
LARGEST_SECONDS_MS = 9223372036854774
"""The last millisecond that fits an int64 of microseconds."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A case: its title, its task, and the expected rows or error."""

    title: str
    task: TaskDict
    rows: Rows | None = None
    error: str = ""
    is_python_only: bool = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of the case's file."""
        result = {"error": self.error} if self.rows is None else {"rows": self.rows}
        return {
            "title": self.title,
            "isPythonOnly": self.is_python_only,
            "task": _relative(self.task),
            **result,
        }


def _relative(task: TaskDict) -> TaskDict:
    """Return a task without the fields that depend on this checkout or machine."""
    text = json.dumps(task).replace(f"{PROJECT}/", "")
    return [values | {"identity": "", "stamp": ""} for values in json.loads(text)]


class Files:
    """The files of a case, written next to the cases."""

    def __init__(self, name: str, *, is_dry: bool) -> None:
        """Take the case's name; `is_dry` writes nothing."""
        self.root = FILES / name
        self._is_dry = is_dry

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the partition; return its path."""
        path = self.root / "t-0" / name
        if not self._is_dry:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return str(path)

    def committed(self, batches: Sequence[bytes], torn: bytes = b"", base_offset: int = 0) -> Slice:
        """Write a committed segment; return the slice with all of it."""
        data = b"".join(batches)
        return Slice(
            topic="t",
            partition=0,
            topic_id="oLU2KAuJTQu3f_SSptKlOA",
            root=str(self.root),
            path=self.write(f"{base_offset:020d}.log", data + torn),
            is_committed=True,
            identity="",
            stamp="",
            file_size_bytes=len(data) + len(torn),
            segment_size_bytes=len(data),
            base_offset=base_offset,
            offset_shift=0,
            start_position=0,
            end_position=len(data),
            first_offset=base_offset,
            limit_offset=base_offset + 1_000,
            start_offset=base_offset,
            end_offset=base_offset + 1_000,
            index_path="",
            index_size_bytes=0,
            crc32c=google_crc32c.value(data),
            committed_only=True,
            aborted=[],
            markers_end_offset=UNKNOWN,
            are_markers_in_file=True,
        )

    def raw(self, batches: Sequence[bytes], tail: bytes = b"", base_offset: int = 0) -> Slice:
        """Write an active segment; return the slice with its readable bytes."""
        return replace(
            self.committed(batches, tail, base_offset),
            topic_id="",
            is_committed=False,
            file_size_bytes=UNKNOWN,
            first_offset=UNKNOWN,
            crc32c=UNKNOWN,
            markers_end_offset=base_offset + 1_000,
        )

    def index(self, batches: Sequence[bytes]) -> dict[str, Any]:
        """Write an offset index with an entry for each batch; return the fields that name it."""
        data = offset_index(entries_of(batches))
        return {"index_path": self.write(f"{0:020d}.index", data), "index_size_bytes": len(data)}


MakeCase = Callable[[Files], Case]


class Cases(dict[str, MakeCase]):
    """Cases by name."""

    def add(self, make: MakeCase) -> MakeCase:
        """Add a case under its function's name."""
        self[make.__name__] = make
        return make


RECORDS = [
    Record(number, 1_700_000_000_000 + number, b"k%d" % number, b"value %d" % number)
    for number in range(40)
]


def batches_of(records: Sequence[Record], size: int = 4, **fields: Any) -> list[bytes]:
    """Return batches of a few records each."""
    return [
        batch(records[first : first + size], **fields) for first in range(0, len(records), size)
    ]


def rows_of(records: Sequence[Record], timestamp_type: int = 0) -> Rows:
    """Return the rows of records."""
    return [
        row_of(
            record.offset,
            record.timestamp,
            timestamp_type,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    ]
