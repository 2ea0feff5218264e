"""Which columns a reader returns: Kafka's, in the order and types of Spark's connector.

The rule: a timestamp is a count of microseconds, which cannot hold all of Kafka's milliseconds. A
time beyond them becomes the earliest or latest time that Spark can hold, never another time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from klog.logformat.arrow_values import from_numpy
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.record_headers import HEADERS_TYPE

_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}
_DECODED = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp_ms",
    "timestampType": "timestamp_type",
    "headers": "headers",
}
"""By column the field of `RecordColumns` that has to be decoded for it."""
MAX_TIMESTAMP_MS = (1 << 63) // 1000 - 1
"""The latest time, and its negative the earliest, that a column can hold."""


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of columns.

    Args:
        columns: The names of the columns, in order.
    """
    return pa.schema([(name, _TYPES[name]) for name in columns])


def decoded_columns(columns: Collection[str]) -> set[str]:
    """Return the fields of `RecordColumns` that have to be decoded for columns.

    Args:
        columns: The names of the columns.
    """
    return {_DECODED[name] for name in columns if name in _DECODED}


def to_record_batch(
    topic: str, partition: int, columns: RecordColumns, schema: pa.Schema
) -> pa.RecordBatch:
    """Return the decoded records of one partition as rows.

    Args:
        topic: The topic.
        partition: Number of the partition.
        columns: The records.
        schema: The columns to return, as `arrow_schema` makes it.
    """
    count = len(columns.offset)
    arrays = []
    for name in schema.names:
        if name == "topic":
            arrays.append(_repeated(topic, count))
        elif name == "partition":
            arrays.append(from_numpy(np.full(count, partition, np.int32)))
        elif name == "offset":
            arrays.append(from_numpy(columns.offset))
        elif name == "timestamp":
            arrays.append(_timestamps(columns))
        elif name == "timestampType":
            assert columns.timestamp_type is not None
            arrays.append(from_numpy(columns.timestamp_type.astype(np.int32)))
        else:
            arrays.append(getattr(columns, name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _timestamps(columns: RecordColumns) -> pa.Array:
    assert columns.timestamp_ms is not None
    timestamp_ms = np.clip(columns.timestamp_ms, -MAX_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
    return from_numpy(timestamp_ms * 1000).view(pa.timestamp("us", "UTC"))


def _repeated(text: str, count: int) -> pa.Array:
    """Repeat a string: one buffer of bytes and one of offsets."""
    encoded = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(encoded * count)]
    )
