"""Any records, to files and back: key, value, headers, timestamp, partition and offset stay."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klog
from klog.connector.options.read_columns import COLUMNS
from klog.jobs import import_files, to_files
from tests.jobs.file_rows import START_MS, log_rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
OPTIONAL_BYTES = st.none() | st.binary(max_size=20)
RECORD = st.fixed_dictionaries(
    {
        "key": OPTIONAL_BYTES,
        "value": OPTIONAL_BYTES,
        "headers": st.lists(
            st.fixed_dictionaries({"key": st.text(max_size=5), "value": OPTIONAL_BYTES}),
            max_size=3,
        ),
        "timestamp": st.integers(-1, 3) | st.integers(0, START_MS),
        "partition": st.integers(0, 2),
    }
)
ROOTS = count()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    appends=st.lists(st.lists(RECORD, min_size=1, max_size=12), min_size=1, max_size=4),
    max_file_bytes=st.sampled_from([1, 150, 1 << 27]),
    layout=st.sampled_from(["hour", "day", "none"]),
    compression=st.sampled_from(["zstd", "snappy", "gzip", "lz4", "none"]),
)
def test_any_records_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    appends: list[list[dict[str, Any]]],
    max_file_bytes: int,
    layout: str,
    compression: str,
) -> None:
    work = tmp_path_factory.getbasetemp() / f"round-trip-{next(ROOTS)}"
    root, to = work / "root", work / "files"
    log = klog.open(str(root))
    for topic in ("from", "back"):
        log.create_topic(topic, partitions=3)
    for records in appends:
        log.append("from", _table(records))
        to_files.run(
            None,
            str(root),
            "from",
            str(to),
            max_file_bytes=max_file_bytes,
            partition_by=layout,
            compression=compression,
        )
        import_files.run(None, str(root), "back", str(to / "from"), format="parquet")
    assert _rows(root, "back") == _rows(root, "from")


def _table(records: list[dict[str, Any]]) -> pa.Table:
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": HEADERS,
        "timestamp": pa.timestamp("ms", "UTC"),
        "partition": pa.int32(),
    }
    return pa.table(
        {name: pa.array([row[name] for row in records], kind) for name, kind in types.items()}
    )


def _rows(root: Path, topic: str) -> list[dict[str, Any]]:
    rows = log_rows(root, topic)
    assert all(set(row) == set(COLUMNS) for row in rows)
    return [{**row, "topic": ""} for row in rows]
