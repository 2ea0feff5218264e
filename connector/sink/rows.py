"""Rows to write: uniform columns with all that writing wants to know of each row, checked.

The rule: what no partition of the topic could take is refused here, before a byte is staged, in one
error that names the row by its number in what the task was given. The checks are a broker's
(docs/format.md, 9; Kafka's `LogValidator`): a key on a compacted topic, times within
`message.timestamp.before.max.ms` and `.after.max.ms`, both ends included, -1 for no time at all.
That a record is too large for `max.message.bytes` only its encoding shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.connector.sink.columns import (
    as_bytes,
    as_headers,
    as_milliseconds,
    as_partitions,
    check_columns,
)
from klog.errors import KlogError
from klog.logformat.arrow import Column, byte_lengths
from klog.logformat.batch import NO_TIMESTAMP
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.headers import HEADERS_TYPE
from klog.logformat.index import Longs
from klog.logformat.records import Records, measure

PIECE_ROWS, PIECE_BYTES = 1 << 16, 16 << 20
"""Rows are taken in pieces of at most so many, or so many bytes of keys and values, or one row."""
_MAX_RECORD_BYTES = MAX_BATCH_BYTES - 128
"""Leaves room for the batch's header and the varints of its only record."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a topic asks of each row; times in ms, both bounds included.

    `earliest_ms` and `latest_ms` are None where any time may be.
    """

    topic: str
    partitions: int
    now_ms: int
    needs_key: bool = False
    earliest_ms: int | None = None
    latest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in order. `key` and `value` are binary, `headers` of `HEADERS_TYPE` or None if none has.

    `partition` int64, null or None where the partitioner decides. `numbers` are the rows' numbers
    in what was given, `least_bytes` those that a record takes in any batch, or fewer.
    """

    key: Column
    value: Column
    headers: Column | None
    timestamp_ms: Longs
    partition: pa.Array | None
    numbers: Longs
    least_bytes: Longs

    def __len__(self) -> int:
        """Give the number of rows."""
        return len(self.numbers)

    def take(self, order: npt.NDArray[np.int64]) -> Rows:
        """Give rows in another order, in memory of their own."""
        return Rows(
            _taken(self.key, order),
            _taken(self.value, order),
            None if self.headers is None else _taken(self.headers, order),
            self.timestamp_ms[order],
            None,
            self.numbers[order],
            self.least_bytes[order],
        )

    def part(self, begin: int, end: int) -> Rows:
        """Keep the rows from `begin` to before `end`; nothing is copied."""
        count = end - begin
        return Rows(
            self.key.slice(begin, count),
            self.value.slice(begin, count),
            None if self.headers is None else self.headers.slice(begin, count),
            self.timestamp_ms[begin:end],
            None,
            self.numbers[begin:end],
            self.least_bytes[begin:end],
        )


def joined(parts: Sequence[Rows]) -> Rows:
    """Put rows one behind the other; keys, values and headers stay where they are, in chunks."""
    if len(parts) == 1:
        return parts[0]
    headers = None
    if any(part.headers is not None for part in parts):
        headers = _chunked(
            [pa.nulls(len(p), HEADERS_TYPE) if p.headers is None else p.headers for p in parts]
        )
    return Rows(
        _chunked([part.key for part in parts]),
        _chunked([part.value for part in parts]),
        headers,
        np.concatenate([part.timestamp_ms for part in parts]),
        None,
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.least_bytes for part in parts]),
    )


def read_rows(batch: pa.RecordBatch, first_row: int, rules: Rules) -> Iterator[Rows]:
    """Check a batch whose first row has number `first_row`; gives its rows in pieces.

    Raises `OptionError` for its columns and `KlogError` that names the first row that is wrong.
    """
    check_columns(batch.schema)
    given = {name: batch.column(name) for name in batch.schema.names}
    nothing = pa.nulls(len(batch))
    key, value = as_bytes(given.get("key", nothing)), as_bytes(given["value"])
    bytes_behind = np.cumsum(np.maximum(byte_lengths(key), 0) + np.maximum(byte_lengths(value), 0))
    _refuse(
        np.diff(bytes_behind, prepend=0) > _MAX_RECORD_BYTES,
        first_row,
        rules,
        f"the record has more than {_MAX_RECORD_BYTES} bytes, which no batch holds; split it",
    )
    begin = 0
    while begin < len(batch):
        before = int(bytes_behind[begin - 1]) if begin else 0
        fitting = int(np.searchsorted(bytes_behind, before + PIECE_BYTES, "right"))
        end = min(max(fitting, begin + 1), begin + PIECE_ROWS, len(batch))
        count = end - begin
        piece = {
            name: given.get(name, nothing).slice(begin, count)
            for name in ("headers", "partition", "timestamp")
        }
        piece["key"] = key.slice(begin, count).cast(pa.binary())
        piece["value"] = value.slice(begin, count).cast(pa.binary())
        yield _checked(piece, first_row + begin, rules)
        begin = end


def _taken(column: Column, order: npt.NDArray[np.int64]) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.take(pa.array(order))


def _chunked(columns: Sequence[Column]) -> pa.ChunkedArray:
    chunks: list[pa.Array] = []
    for column in columns:
        chunks += column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array(chunks)


def _checked(piece: dict[str, pa.Array], first_row: int, rules: Rules) -> Rows:
    timestamps = as_milliseconds(piece["timestamp"], rules.now_ms)
    _check_timestamps(timestamps, first_row, rules)
    if rules.needs_key and piece["key"].null_count:
        why = "it has no key, which a compacted topic asks for; give it one, or write elsewhere"
        _refuse(piece["key"].is_null().to_numpy(False), first_row, rules, why)
    headers = as_headers(piece["headers"])
    records = Records(pa.array(timestamps), piece["key"], piece["value"], headers)
    try:
        least = measure(records, 0, len(records)).least
    except ValueError as exc:  # "row 3: a header without a name"
        number, _, reason = str(exc).removeprefix("row ").partition(": ")
        raise KlogError(f"{rules.topic}: row {first_row + int(number)}: {reason}") from exc
    why = f"the record has more than {_MAX_RECORD_BYTES} bytes, which no batch holds; split it"
    _refuse(least > _MAX_RECORD_BYTES, first_row, rules, why)
    return Rows(
        piece["key"],
        piece["value"],
        headers,
        timestamps,
        _partitions(piece["partition"], first_row, rules),
        np.arange(first_row, first_row + len(timestamps)),
        least,
    )


def _partitions(column: pa.Array, first_row: int, rules: Rules) -> pa.Array | None:
    if column.null_count == len(column):
        return None
    partitions = as_partitions(column)
    found = partitions.fill_null(0).to_numpy()
    wrong = (found < 0) | (found >= rules.partitions)
    if wrong.any():
        number = found[int(np.argmax(wrong))]
        most = rules.partitions - 1
        _refuse(wrong, first_row, rules, f"there is no partition {number}, only 0 to {most}")
    return partitions


def _check_timestamps(timestamps: Longs, first_row: int, rules: Rules) -> None:
    least, most = int(timestamps.min()), int(timestamps.max())
    if least < NO_TIMESTAMP:
        wrong = timestamps < NO_TIMESTAMP
        first = timestamps[int(np.argmax(wrong))]
        why = f"the timestamp, {first} ms, is before 1970 or beyond what milliseconds can say"
        _refuse(wrong, first_row, rules, why)
    if rules.earliest_ms is not None and least < rules.earliest_ms:
        wrong = (timestamps < rules.earliest_ms) & (timestamps != NO_TIMESTAMP)
        _refuse(wrong, first_row, rules, _outside(timestamps, wrong, "before", rules))
    if rules.latest_ms is not None and most > rules.latest_ms:
        wrong = timestamps > rules.latest_ms
        _refuse(wrong, first_row, rules, _outside(timestamps, wrong, "after", rules))


def _outside(timestamps: Longs, wrong: npt.NDArray[np.bool_], side: str, rules: Rules) -> str:
    return (
        f"the timestamp, {timestamps[int(np.argmax(wrong))]} ms, lies further {side} now "
        f"({rules.now_ms} ms) than message.timestamp.{side}.max.ms lets it; give the time in which "
        "it was made, or raise that config of the topic"
    )


def _refuse(wrong: npt.NDArray[np.bool_], first_row: int, rules: Rules, why: str) -> None:
    if wrong.any():
        raise KlogError(f"{rules.topic}: row {first_row + int(np.argmax(wrong))}: {why}")
