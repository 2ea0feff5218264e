"""The rows that klog gives: Kafka's columns in the order and types of Spark's connector.

A timestamp is a microsecond count, in which Kafka's milliseconds need not fit: what lies beyond
becomes the earliest or latest time that Spark can hold, never another time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from klog.logformat.columnar import Columns
from klog.logformat.headers import HEADERS_TYPE

_FIELDS = {
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
    "timestamp": "timestamp_ms",
    "timestampType": "timestamp_type",
    "headers": "headers",
}
MAX_TIMESTAMP_MS = (1 << 63) // 1000 - 1


def schema(columns: Sequence[str]) -> pa.Schema:
    """Give the Arrow schema of these columns."""
    return pa.schema([(name, _FIELDS[name]) for name in columns])


def decoded(columns: Collection[str]) -> set[str]:
    """Name what has to be decoded to give these columns."""
    return {_DECODED[name] for name in columns if name in _DECODED}


def rows(topic: str, partition: int, columns: Columns, wanted: pa.Schema) -> pa.RecordBatch:
    """Make a record batch of the decoded columns of one partition's records."""
    count = len(columns.offset)
    arrays = []
    for name in wanted.names:
        if name == "topic":
            arrays.append(_repeated(topic, count))
        elif name == "partition":
            arrays.append(pa.array(np.full(count, partition, np.int32)))
        elif name == "offset":
            arrays.append(pa.array(columns.offset))
        elif name == "timestamp":
            arrays.append(_timestamps(columns))
        elif name == "timestampType":
            assert columns.timestamp_type is not None
            arrays.append(pa.array(columns.timestamp_type.astype(np.int32)))
        else:
            arrays.append(getattr(columns, name))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _timestamps(columns: Columns) -> pa.Array:
    assert columns.timestamp_ms is not None
    held = np.clip(columns.timestamp_ms, -MAX_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
    return pa.array(held * 1000).view(pa.timestamp("us", "UTC"))


def _repeated(text: str, count: int) -> pa.Array:
    """Repeat a string: one buffer of bytes and one of offsets."""
    encoded = text.encode()
    bounds = np.arange(count + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(bounds), pa.py_buffer(encoded * count)]
    )
