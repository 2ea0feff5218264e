"""The records that klog's reader returns, in the form of the real consumer's account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.row_schema import MAX_TIMESTAMP_MS
from klog.connector.source.task_reader import make_reader
from tests.corpus import LONGEST_VALUE_KEPT_BYTES, Digest, Record

LEVELS = ("read_uncommitted", "read_committed")


def read_partition(
    log_dirs: Sequence[Path], topic: str, partition: int, level: str, **more: str
) -> list[Record]:
    """Read all records of a partition at an isolation level; `more` are options."""
    directories = [str(path) for path in log_dirs]
    settings = {
        "assign": json.dumps({topic: [partition]}),
        "includeHeaders": "true",
        "isolationLevel": level,
    } | more
    options = parse_read_options(settings)
    root = open_root(directories)
    records = []
    for task in scan_planner.plan_snapshot(root.snapshot(), options):
        for batch in make_reader(directories, options).read(task):
            batch.validate(full=True)
            times = batch.column("timestamp").cast("int64").to_pylist()
            position = batch.schema.get_field_index("timestamp")
            for row, microseconds in zip(
                batch.remove_column(position).to_pylist(), times, strict=True
            ):
                value = row["value"]
                long = value is not None and len(value) > LONGEST_VALUE_KEPT_BYTES
                headers = tuple((h["key"], h["value"]) for h in row["headers"] or ())
                assert microseconds % 1000 == 0
                records.append(
                    Record(
                        row["topic"],
                        row["partition"],
                        row["offset"],
                        microseconds // 1000,
                        row["timestampType"],
                        row["key"],
                        Digest.of(value) if long else value,
                        headers,
                        read_committed=True,
                    )
                )
    return records


def told_at(records: Sequence[Record], level: str) -> list[Record]:
    """Return the records of an account at an isolation level, in the form of `read_partition`."""
    return [
        replace(record, timestamp=_clamped(record.timestamp), read_committed=True)
        for record in records
        if level == "read_uncommitted" or record.read_committed
    ]


def _clamped(timestamp_ms: int) -> int:
    """Limit a time to what Spark's microseconds can hold: `docs/reading.md`, Timestamps."""
    return max(-MAX_TIMESTAMP_MS, min(timestamp_ms, MAX_TIMESTAMP_MS))
