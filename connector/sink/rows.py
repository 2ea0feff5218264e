"""Rows to write: uniform columns with all that writing wants to know of each row, checked.

The rule: what no partition of the topic could take is refused here, before a byte is staged: in one
error that names the row by its number in what the task was given, or set aside. The checks are a
broker's (docs/format.md, 9; Kafka's `LogValidator`): a key on a compacted topic, times within
`message.timestamp.before.max.ms` and `.after.max.ms`, both ends included, -1 for no time at all.
That a record is too large for `max.message.bytes` only its encoding shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.sink.columns import (
    as_bytes,
    as_headers,
    as_milliseconds,
    as_partitions,
    check_columns,
)
from klog.errors import KlogError
from klog.logformat.arrow import Column, byte_lengths, chunks_of
from klog.logformat.batch import NO_TIMESTAMP
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.headers import HEADERS_TYPE, header_sizes
from klog.logformat.index import Longs
from klog.logformat.walk import MIN_RECORD_BYTES

PIECE_ROWS, PIECE_BYTES = 1 << 16, 16 << 20
"""Rows are taken in pieces of at most so many, or so many bytes of keys and values, or one row."""
_MAX_RECORD_BYTES = MAX_BATCH_BYTES - 128
"""Leaves room for the batch's header and the varints of its only record."""
_NO_BATCH = f"the record has more than {_MAX_RECORD_BYTES} bytes, which no batch holds; split it"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a topic asks of each row; times in ms, both bounds included.

    `earliest_ms` and `latest_ms` are None where any time may be. `task` says whose rows they are,
    where there are several.
    """

    topic: str
    partitions: int
    now_ms: int
    needs_key: bool = False
    earliest_ms: int | None = None
    latest_ms: int | None = None
    task: str = ""

    def place(self, row: int) -> str:
        """Say where a row is that is wrong."""
        return f"{self.topic}: row {row}{self.task and f' of {self.task}'}"


class RefusedError(Exception):
    """Rows that cannot be written: which of those given, and why each."""

    def __init__(self, wrong: npt.NDArray[np.bool_], why: Callable[[int], str]) -> None:
        """Take a mask of the rows, and what says why one of them is wrong."""
        super().__init__()
        self.wrong, self.why = wrong, why


Aside: TypeAlias = Callable[[Mapping[str, Column], RefusedError, Longs], None]
"""Takes what cannot be written: the columns of rows, which of them it is, the numbers of all."""


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


def read_rows(
    batch: pa.RecordBatch, numbers: Longs, rules: Rules, aside: Aside | None = None
) -> Iterator[Rows]:
    """Check a batch whose rows have these numbers; gives its rows in pieces.

    Rows that are wrong go aside, where that is given. Raises `OptionError` for its columns, and
    `KlogError` that names the first row that is wrong or that no batch could hold.
    """
    check_columns(batch.schema)
    given = {name: batch.column(name) for name in batch.schema.names}
    nothing = pa.nulls(len(batch))
    key, value = as_bytes(given.get("key", nothing)), as_bytes(given["value"])
    sizes = np.maximum(byte_lengths(key), 0) + np.maximum(byte_lengths(value), 0)
    if int(sizes.max(initial=0)) > _MAX_RECORD_BYTES:
        row = int(numbers[np.argmax(sizes > _MAX_RECORD_BYTES)])
        raise KlogError(f"{rules.place(row)}: {_NO_BATCH}")
    bytes_behind = sizes.cumsum()
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
        yield from _sound(piece, sizes[begin:end], numbers[begin:end], rules, aside)
        begin = end


def as_given(rows: Rows) -> dict[str, Column]:
    """Give the columns that rows came in, as far as they are kept."""
    return {
        "key": rows.key,
        "value": rows.value,
        "headers": pa.nulls(len(rows), HEADERS_TYPE) if rows.headers is None else rows.headers,
        "partition": pa.nulls(len(rows)) if rows.partition is None else rows.partition,
        "timestamp": pa.array(rows.timestamp_ms, pa.timestamp("ms")),
    }


def _sound(
    piece: dict[str, pa.Array], sizes: Longs, numbers: Longs, rules: Rules, aside: Aside | None
) -> Iterator[Rows]:
    """Give the rows that can be written: each check is made of those that passed the last."""
    while len(numbers):
        try:
            yield _checked(piece, sizes, numbers, rules)
        except RefusedError as refused:
            if aside is None:
                first = int(np.argmax(refused.wrong))
                place = rules.place(int(numbers[first]))
                raise KlogError(f"{place}: {refused.why(first)}") from None
            aside(piece, refused, numbers)
            sound = pa.array(~refused.wrong)
            piece = {name: column.filter(sound) for name, column in piece.items()}
            sizes, numbers = sizes[~refused.wrong], numbers[~refused.wrong]
        else:
            return


def _taken(column: Column, order: npt.NDArray[np.int64]) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.take(pa.array(order))


def _chunked(columns: Sequence[Column]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in chunks_of(column)])


def _checked(piece: dict[str, pa.Array], sizes: Longs, numbers: Longs, rules: Rules) -> Rows:
    """Make rows uniform; `sizes` are the bytes of key and value.

    Raises `RefusedError` for those that the topic cannot take.
    """
    timestamps = as_milliseconds(piece["timestamp"], rules.now_ms)
    _check_timestamps(timestamps, rules)
    if rules.needs_key and piece["key"].null_count:
        why = "it has no key, which a compacted topic asks for; give it one, or write elsewhere"
        _refuse(piece["key"].is_null().to_numpy(False), why)
    headers = as_headers(piece["headers"])
    _check_headers(headers)
    try:
        least = sizes + MIN_RECORD_BYTES
        if headers is not None:  # The least record has their count, a byte.
            least += header_sizes(headers, 0) - 1
    except ValueError as exc:  # "row 3: the record has more than 65536 headers"
        row, _, reason = str(exc).removeprefix("row ").partition(": ")
        raise RefusedError(np.arange(len(numbers)) == int(row), lambda _: reason) from exc
    _refuse(least > _MAX_RECORD_BYTES, _NO_BATCH)
    return Rows(
        piece["key"],
        piece["value"],
        headers,
        timestamps,
        _partitions(piece["partition"], rules),
        numbers,
        least,
    )


def _check_headers(headers: pa.Array | None) -> None:
    if headers is None:
        return
    nameless = pc.struct_field(headers.flatten(), "key").is_null().to_numpy(False)
    if nameless.any():
        counts = pc.list_value_length(headers).fill_null(0).to_numpy()
        wrong = np.zeros(len(headers), bool)
        wrong[np.repeat(np.arange(len(headers)), counts)[nameless]] = True
        _refuse(wrong, "a header without a name; give it one, or leave it out")


def _partitions(column: pa.Array, rules: Rules) -> pa.Array | None:
    if column.null_count == len(column):
        return None
    partitions = as_partitions(column)
    found = partitions.fill_null(0).to_numpy()
    most = rules.partitions - 1
    _refuse(
        (found < 0) | (found >= rules.partitions),
        lambda row: f"there is no partition {found[row]}, only 0 to {most}",
    )
    return partitions


def _check_timestamps(timestamps: Longs, rules: Rules) -> None:
    least, most = int(timestamps.min()), int(timestamps.max())
    if least < NO_TIMESTAMP:
        _refuse(
            timestamps < NO_TIMESTAMP,
            lambda row: (
                f"the timestamp, {timestamps[row]} ms, is before 1970 or beyond what milliseconds "
                "can say"
            ),
        )
    if rules.earliest_ms is not None and least < rules.earliest_ms:
        wrong = (timestamps < rules.earliest_ms) & (timestamps != NO_TIMESTAMP)
        _refuse(wrong, lambda row: _outside(int(timestamps[row]), "before", rules))
    if rules.latest_ms is not None and most > rules.latest_ms:
        wrong = timestamps > rules.latest_ms
        _refuse(wrong, lambda row: _outside(int(timestamps[row]), "after", rules))


def _outside(timestamp_ms: int, side: str, rules: Rules) -> str:
    return (
        f"the timestamp, {timestamp_ms} ms, lies further {side} now ({rules.now_ms} ms) than "
        f"message.timestamp.{side}.max.ms lets it; give the time in which it was made, or raise "
        "that config of the topic"
    )


def _refuse(wrong: npt.NDArray[np.bool_], why: str | Callable[[int], str]) -> None:
    if wrong.any():
        raise RefusedError(wrong, (lambda row: why) if isinstance(why, str) else why)
