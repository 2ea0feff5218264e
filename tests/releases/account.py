"""The account of a root: its topics, their ids, configs and offsets, and every record.

The rule: a record is an object as `klog consume --json` prints it. For a topic with many records,
the account has a digest for each partition instead. Whichever klog can be imported makes it, also
an earlier release (`requests.py`): use only names that klog 0.1 has.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

import klog

Record = dict[str, Any]
MAX_RECORDS = 500
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def records_of(root: Path, topic: str) -> list[Record]:
    """Return the records of a topic by partition and offset, as `klog.open` reads them."""
    records = []
    for batch in klog.open(root).scan(topic, columns=COLUMNS):
        position = batch.schema.get_field_index("timestamp")
        times = batch.column(position).cast(pa.int64()).to_pylist()
        for row, time_us in zip(batch.remove_column(position).to_pylist(), times, strict=True):
            headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
            records.append(
                {
                    "topic": row["topic"],
                    "partition": row["partition"],
                    "offset": row["offset"],
                    "timestamp": time_us // 1000,
                    "timestampType": TIMESTAMP_TYPES[row["timestampType"]],
                    "headers": [{"key": key, "value": _text(value)} for key, value in headers],
                    "key": _text(row["key"]),
                    "value": _text(row["value"]),
                }
            )
    return ordered(records)


def ordered(records: list[Record]) -> list[Record]:
    """Return records by partition and offset."""
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


def topic_account(root: Path, topic: str) -> dict[str, Any]:
    """Return the account of a topic."""
    description = klog.open(root).describe(topic)
    return {
        "topicId": description.topic_id,
        "configs": dict(description.config),
        "partitions": [
            {"logStartOffset": partition.log_start, "logEndOffset": partition.log_end}
            for partition in description.partitions
        ],
        "records": short(records_of(root, topic)),
    }


def short(records: list[Record]) -> list[Record] | dict[str, str]:
    """Return the records, or if there are many, a digest by partition."""
    if len(records) <= MAX_RECORDS:
        return records
    digests: dict[int, Any] = defaultdict(hashlib.sha256)
    for record in records:
        digests[record["partition"]].update(json.dumps(record, sort_keys=True).encode())
    return {str(partition): digest.hexdigest() for partition, digest in digests.items()}


def root_account(root: Path) -> dict[str, Any]:
    """Return the account of each topic of a root."""
    return {topic: topic_account(root, topic) for topic in klog.open(root).topics()}


def _text(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
