"""What directories of files have, by readers that know nothing of klog, and by the manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import klog
from klog.connector.options.read_columns import COLUMNS

ORDER = [("partition", "ascending"), ("offset", "ascending")]
HOUR_MS = 3_600_000
START_MS = 1_764_338_400_000
"""2025-11-28 14:00 UTC."""


def log_rows(root: Path, topic: str) -> list[dict[str, Any]]:
    """Return the records of a topic."""
    table = klog.open(str(root)).scan(topic, columns=COLUMNS).read_all()
    return _sorted_rows(table)


def directory_rows(directory: Path) -> list[dict[str, Any]]:
    """Return the records that a reader of the directory sees."""
    if not list(directory.rglob("*.parquet")):
        return []
    table = ds.dataset(str(directory), partitioning="hive").to_table(columns=list(COLUMNS))
    return _sorted_rows(table)


def manifest_rows(directory: Path) -> list[dict[str, Any]]:
    """Return the records of the files that the manifest lists; their facts are checked."""
    tables = []
    for entry in manifest_entries(directory):
        for file in entry.get("files", ()):
            path = directory / file["path"]
            table = pq.ParquetFile(path).read()
            offsets = table["offset"].to_pylist()
            assert path.stat().st_size == file["sizeBytes"]
            assert len(table) == file["records"]
            assert (offsets[0], offsets[-1] + 1) == (file["startOffset"], file["endOffset"])
            assert offsets == sorted(offsets)
            tables.append(table.select(list(COLUMNS)))
    if not tables:
        return []
    return _sorted_rows(pa.concat_tables(tables))


def _sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in order, with times as numbers: Python has no dates after the year 9999."""
    column = table.schema.get_field_index("timestamp")
    table = table.set_column(column, "timestamp", table["timestamp"].cast(pa.int64()))
    rows: list[dict[str, Any]] = table.sort_by(ORDER).to_pylist()
    return rows


def manifest_entries(directory: Path) -> list[dict[str, Any]]:
    """Return the entries of the manifest, in order."""
    folder = directory / "_manifest"
    return [json.loads(path.read_text()) for path in sorted(folder.glob("0*.json"))]


def hour_table(hours: list[int], value: str = "v") -> pa.Table:
    """Return rows to append, one for each hour after `START_MS`, some without key or headers."""
    count = len(hours)
    return pa.table(
        {
            "key": pa.array([None if n % 3 == 0 else f"k{n}" for n in range(count)], pa.string()),
            "value": pa.array([None if n % 7 == 3 else f"{value}{n}" for n in range(count)]),
            "headers": pa.array(
                [[{"key": "h", "value": b"1"}] if n % 2 else None for n in range(count)],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
            "timestamp": pa.array(
                [START_MS + hour * HOUR_MS + n for n, hour in enumerate(hours)],
                pa.timestamp("ms", "UTC"),
            ),
        }
    )
