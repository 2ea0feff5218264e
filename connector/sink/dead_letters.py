"""Rejected rows as records of the topic for dead letters.

The rule: a dead letter has the key, the value and the headers of its row, followed by headers that
say why the row was rejected. Its timestamp is the time of the write, and its partition follows from
its key, because the row's own timestamp and partition may be what was wrong. Headers:

    klog.dead-letter.reason     why the row cannot be written
    klog.dead-letter.topic      the topic of the row; absent if it named none
    klog.dead-letter.partition  the value of its column `partition`; absent if that was null
    klog.dead-letter.timestamp  its timestamp in ms since the epoch; the time of staging if it is
                                too large and had none
    klog.dead-letter.writer     the writer's name and its batch, `<name>/<number>`, or the write id
    klog.dead-letter.row        `<task>/<row>`, both from 0
    klog.dead-letter.attempt    1; one more each time the dead letter is written again and rejected

If the row has headers of these names, only the last attempt counts; the others are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.sink.row_checks import RejectedRowsError
from klog.connector.sink.write_columns import as_bytes, as_headers, as_milliseconds, as_partitions
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column, element_bounds
from klog.logformat.batches.record_headers import HEADER_TYPE, HEADERS_TYPE

PREFIX = "klog.dead-letter."
ATTEMPT = f"{PREFIX}attempt"
_NO_TIME = -1


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Makes the dead letters of one task.

    Attributes:
        topic: The topic for dead letters.
        writer: The writer's name and batch, or the write id.
        task: The number of the task.
    """

    topic: str
    writer: str
    task: int

    def rows(
        self,
        topic: str | None,
        columns: Mapping[str, Column],
        error: RejectedRowsError,
        numbers: Longs,
    ) -> pa.RecordBatch:
        """Return the dead letters of rejected rows, in their order.

        Args:
            topic: The topic of the rows; None if they named none.
            columns: The columns of rows.
            error: Which of the rows are rejected, and why.
            numbers: The numbers of all these rows among the rows of the task.
        """
        rejected = np.flatnonzero(error.is_rejected)
        count = len(rejected)
        arrays = {
            name: _as_array(column).take(pa.array(rejected)) for name, column in columns.items()
        }
        nulls = pa.nulls(count)
        key, value = as_bytes(arrays.get("key", nulls)), as_bytes(arrays["value"])
        row_headers = as_headers(arrays.get("headers", nulls))
        facts = {
            "reason": [error.reason(row) for row in rejected.tolist()],
            "topic": [topic] * count,
            "partition": as_partitions(arrays.get("partition", nulls)).to_pylist(),
            "timestamp": _timestamps(arrays.get("timestamp", nulls)),
            "writer": [self.writer] * count,
            "row": [f"{self.task}/{row}" for row in numbers[rejected].tolist()],
            "attempt": _attempts(row_headers, count),
        }
        headers = _add_headers(row_headers, facts, count)
        return pa.RecordBatch.from_arrays([key, value, headers], ["key", "value", "headers"])


def _as_array(column: Column) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _timestamps(column: pa.Array) -> list[int | None]:
    timestamps = as_milliseconds(column, _NO_TIME)
    return [None if time == _NO_TIME else time for time in timestamps.tolist()]


def _flatten_headers(headers: pa.Array | None, count: int) -> tuple[pa.Array, Longs]:
    """Return the headers of all rows, null names as empty ones, and the row of each header."""
    if headers is None:
        return pa.array([], HEADER_TYPE), np.zeros(0, np.int64)
    counts = pc.list_value_length(headers).fill_null(0).to_numpy()
    flat = headers.flatten()
    names = pc.struct_field(flat, "key").fill_null("")
    values = pc.struct_field(flat, "value")
    flat = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    return flat, np.repeat(np.arange(count), counts)


def _attempts(headers: pa.Array | None, count: int) -> list[str]:
    """Return one more than the last attempt in each row's headers, and 1 for rows without any."""
    attempts = np.ones(count, np.int64)
    flat, header_rows = _flatten_headers(headers, count)
    is_attempt = pc.equal(pc.struct_field(flat, "key"), ATTEMPT).to_numpy(False)
    values = pc.struct_field(flat, "value").filter(pa.array(is_attempt)).to_pylist()
    for row, value in zip(header_rows[is_attempt].tolist(), values, strict=True):
        if value is not None and value.isdigit() and len(value) < 10:
            attempts[row] = int(value) + 1
    return [str(attempt) for attempt in attempts.tolist()]


def _add_headers(
    headers: pa.Array | None, facts: Mapping[str, Sequence[object]], count: int
) -> pa.ListArray:
    """Return the rows' headers without those of klog's names, followed by the facts."""
    flat, header_rows = _flatten_headers(headers, count)
    is_own = pc.starts_with(pc.struct_field(flat, "key"), PREFIX).to_numpy(False)
    flat, header_rows = flat.filter(pa.array(~is_own)), header_rows[~is_own]
    names, values, fact_rows = [], [], []
    for name, column in facts.items():
        for row, value in enumerate(column):
            if value is not None:
                names.append(f"{PREFIX}{name}")
                values.append(str(value).encode())
                fact_rows.append(row)
    added = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(HEADER_TYPE)
    )
    rows = np.concatenate([header_rows, np.array(fact_rows, np.int64)])
    flat = pa.concat_arrays([flat, added]).take(pa.array(np.argsort(rows, kind="stable")))
    bounds = element_bounds(np.bincount(rows, minlength=count)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), flat, type=HEADERS_TYPE)
