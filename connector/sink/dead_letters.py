"""Rows that cannot be written, as records of the topic for dead letters.

The rule: a dead letter has the key, the value and the headers of its row, and headers behind them
that say what became of it. Its time is that of the write and its partition that of its key, for
what the row said of these may be what was wrong. Headers:

    klog.dead-letter.reason     why the row cannot be written
    klog.dead-letter.topic      the topic that it was for; none where it named none
    klog.dead-letter.partition  what its column said, if anything
    klog.dead-letter.timestamp  its time in ms since the epoch, that of staging where it was too
                                large and had none
    klog.dead-letter.writer     the writer's name and its batch: `<name>/<number>`
    klog.dead-letter.row        where it was: `<task>/<row>`, both from 0
    klog.dead-letter.attempt    1; of a dead letter that was written again in vain, one more

Of headers of these names that the row brought itself, only the last attempt counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.sink.columns import as_bytes, as_headers, as_milliseconds, as_partitions
from klog.connector.sink.rows import RefusedError
from klog.logformat.arrow import Column, bounds_of
from klog.logformat.headers import HEADER_TYPE, HEADERS_TYPE
from klog.logformat.index import Longs

PREFIX = "klog.dead-letter."
ATTEMPT = f"{PREFIX}attempt"
_NO_TIME = -1


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The topic for dead letters, and whose write and which task they are of."""

    topic: str
    writer: str
    task: int

    def rows(
        self,
        topic: str | None,
        columns: Mapping[str, Column],
        refused: RefusedError,
        numbers: Longs,
    ) -> pa.RecordBatch:
        """Give the rows that were refused as dead letters, in their order."""
        wrong = np.flatnonzero(refused.wrong)
        own = {name: _whole(column).take(pa.array(wrong)) for name, column in columns.items()}
        nothing = pa.nulls(len(wrong))
        key, value = as_bytes(own.get("key", nothing)), as_bytes(own["value"])
        given = as_headers(own.get("headers", nothing))
        said = {
            "reason": [refused.why(row) for row in wrong.tolist()],
            "topic": [topic] * len(wrong),
            "partition": as_partitions(own.get("partition", nothing)).to_pylist(),
            "timestamp": _times(own.get("timestamp", nothing)),
            "writer": [self.writer] * len(wrong),
            "row": [f"{self.task}/{row}" for row in numbers[wrong].tolist()],
            "attempt": _attempts(given, len(wrong)),
        }
        headers = _with(given, said, len(wrong))
        return pa.RecordBatch.from_arrays([key, value, headers], ["key", "value", "headers"])


def _whole(column: Column) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _times(column: pa.Array) -> list[int | None]:
    times = as_milliseconds(column, _NO_TIME)
    return [None if time == _NO_TIME else time for time in times.tolist()]


def _parts(headers: pa.Array | None, rows: int) -> tuple[pa.Array, Longs]:
    """Give all headers, those without a name under an empty one, and the row of each."""
    if headers is None:
        return pa.array([], HEADER_TYPE), np.zeros(0, np.int64)
    counts = pc.list_value_length(headers).fill_null(0).to_numpy()
    all_of_them = headers.flatten()
    names = pc.struct_field(all_of_them, "key").fill_null("")
    values = pc.struct_field(all_of_them, "value")
    made = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    return made, np.repeat(np.arange(rows), counts)


def _attempts(headers: pa.Array | None, rows: int) -> list[str]:
    """Count on from the last attempt that a row's headers tell; 1 where none does."""
    attempts = np.ones(rows, np.int64)
    found, row_of = _parts(headers, rows)
    is_attempt = pc.equal(pc.struct_field(found, "key"), ATTEMPT).to_numpy(False)
    values = pc.struct_field(found, "value").filter(pa.array(is_attempt)).to_pylist()
    for row, value in zip(row_of[is_attempt].tolist(), values, strict=True):
        if value is not None and value.isdigit() and len(value) < 10:
            attempts[row] = int(value) + 1
    return [str(attempt) for attempt in attempts.tolist()]


def _with(
    headers: pa.Array | None, said: Mapping[str, Sequence[object]], rows: int
) -> pa.ListArray:
    """Put what is said of the rows behind the headers that they came with, but for their own."""
    given, row_of = _parts(headers, rows)
    own = pc.starts_with(pc.struct_field(given, "key"), PREFIX).to_numpy(False)
    given, row_of = given.filter(pa.array(~own)), row_of[~own]
    names, values, rows_said = [], [], []
    for name, column in said.items():
        for row, value in enumerate(column):
            if value is not None:
                names.append(f"{PREFIX}{name}")
                values.append(str(value).encode())
                rows_said.append(row)
    added = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(HEADER_TYPE)
    )
    order = np.concatenate([row_of, np.array(rows_said, np.int64)])
    all_of_them = pa.concat_arrays([given, added]).take(pa.array(np.argsort(order, kind="stable")))
    bounds = bounds_of(np.bincount(order, minlength=rows)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), all_of_them, type=HEADERS_TYPE)
