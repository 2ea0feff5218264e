"""Which rows a topic takes, and why it takes others not.

The rule: rows that no partition of the topic could take are rejected here, before a byte is staged.
They fail the write with an error that names the row, or go to a rejecter. The checks are a broker's
(docs/format.md, 9; Kafka's `LogValidator`): a compacted topic needs keys; timestamps lie within
`message.timestamp.before.max.ms` and `.after.max.ms`, both bounds included, or are -1 for "none".
Whether a record is too large for `max.message.bytes` is known only after it is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.sink.write_columns import as_partitions
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.record_batch import NO_TIMESTAMP

MAX_RECORD_BYTES = MAX_BATCH_BYTES - 128
"""Leaves room for the batch's header and for the varints of its only record."""
TOO_LARGE = f"the record has more than {MAX_RECORD_BYTES} bytes, which no batch holds; split it"


@dataclass(frozen=True, slots=True)
class RowRules:
    """A topic's rules for rows.

    Attributes:
        topic: The topic.
        partitions: How many partitions it has.
        now_ms: The timestamp of rows that have none.
        needs_key: Whether rows without a key are rejected.
        min_timestamp_ms: The earliest timestamp, included; None if there is no bound.
        max_timestamp_ms: The latest timestamp, included; None if there is no bound.
        task: The task in error messages; empty if the write has only one.
        is_new: Whether the write creates the topic.
    """

    topic: str
    partitions: int
    now_ms: int
    needs_key: bool = False
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    task: str = ""
    is_new: bool = False

    def place(self, row: int) -> str:
        """Return how error messages name a row.

        Args:
            row: The number of the row among all rows of the task.
        """
        return f"{self.topic}: row {row}{self.task and f' of {self.task}'}"


class RejectedRowsError(Exception):
    """Rows cannot be written.

    Attributes:
        is_rejected: For each of the checked rows, whether it cannot be written.
        reason: Returns why one of them cannot be written, by its index.
    """

    def __init__(self, is_rejected: npt.NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        """Take the rejection.

        Args:
            is_rejected: A mask over the rows.
            reason: Returns the reason for a row, by its index.
        """
        super().__init__()
        self.is_rejected, self.reason = is_rejected, reason


Rejecter: TypeAlias = Callable[[Mapping[str, Column], RejectedRowsError, Longs], None]
"""Takes rejected rows: columns, which of their rows are rejected, the numbers of all of them."""


def check_keys(keys: pa.Array, rules: RowRules) -> None:
    """Reject rows without a key, if the topic needs one.

    Args:
        keys: The keys.
        rules: The topic's rules.

    Raises:
        RejectedRowsError: Rows are rejected.
    """
    if rules.needs_key and keys.null_count:
        reason = "it has no key, which a compacted topic needs; set it, or write to another topic"
        reject(keys.is_null().to_numpy(False), reason)


def check_headers(headers: pa.Array | None) -> None:
    """Reject rows with a header that has no name.

    Args:
        headers: Of `HEADERS_TYPE`; None if no row has any.

    Raises:
        RejectedRowsError: Rows are rejected.
    """
    if headers is None:
        return
    is_nameless = pc.struct_field(headers.flatten(), "key").is_null().to_numpy(False)
    if is_nameless.any():
        counts = pc.list_value_length(headers).fill_null(0).to_numpy()
        is_rejected = np.zeros(len(headers), bool)
        is_rejected[np.repeat(np.arange(len(headers)), counts)[is_nameless]] = True
        reject(is_rejected, "a header without a key; give it one, or leave it out")


def check_partitions(column: pa.Array, rules: RowRules) -> pa.Array | None:
    """Return partitions as int64, None if the partitioner decides for all rows.

    Args:
        column: The column `partition`.
        rules: The topic's rules.

    Raises:
        RejectedRowsError: The topic has no such partition.
    """
    if column.null_count == len(column):
        return None
    partitions = as_partitions(column)
    numbers = partitions.fill_null(0).to_numpy()
    reject(
        (numbers < 0) | (numbers >= rules.partitions),
        lambda row: f"there is no partition {numbers[row]}, {_bounds_text(numbers[row], rules)}",
    )
    return partitions


def _bounds_text(partition: int, rules: RowRules) -> str:
    """Return which partitions there are, and the next step if rows bring those of another topic."""
    if not rules.is_new or partition < 0:
        return f"only 0 to {rules.partitions - 1}"
    return (
        f"because the topic does not exist yet and gets {rules.partitions}. Set numPartitions to "
        "the number that the rows need, or drop the column partition"
    )


def check_timestamps(timestamps: Longs, rules: RowRules) -> None:
    """Reject rows whose timestamps the topic does not take.

    Args:
        timestamps: In ms.
        rules: The topic's rules.

    Raises:
        RejectedRowsError: Rows are rejected.
    """
    min_ms, max_ms = int(timestamps.min()), int(timestamps.max())
    if min_ms < NO_TIMESTAMP:
        reject(
            timestamps < NO_TIMESTAMP,
            lambda row: (
                f"the timestamp, {timestamps[row]} ms, is before 1970, or does not fit "
                "into milliseconds; correct it"
            ),
        )
    if rules.min_timestamp_ms is not None and min_ms < rules.min_timestamp_ms:
        is_rejected = (timestamps < rules.min_timestamp_ms) & (timestamps != NO_TIMESTAMP)
        reject(is_rejected, lambda row: _out_of_bounds(int(timestamps[row]), "before", rules))
    if rules.max_timestamp_ms is not None and max_ms > rules.max_timestamp_ms:
        is_rejected = timestamps > rules.max_timestamp_ms
        reject(is_rejected, lambda row: _out_of_bounds(int(timestamps[row]), "after", rules))


def _out_of_bounds(timestamp_ms: int, side: str, rules: RowRules) -> str:
    return (
        f"the timestamp, {timestamp_ms} ms, lies further {side} now ({rules.now_ms} ms) than "
        f"message.timestamp.{side}.max.ms allows; correct it, or raise that config of the topic"
    )


def reject(is_rejected: npt.NDArray[np.bool_], reason: str | Callable[[int], str]) -> None:
    """Reject rows, if there are any to reject.

    Args:
        is_rejected: For each row whether it is rejected.
        reason: Why, or the function that returns why by the index of a row.

    Raises:
        RejectedRowsError: Rows are rejected.
    """
    if is_rejected.any():
        raise RejectedRowsError(
            is_rejected, (lambda row: reason) if isinstance(reason, str) else reason
        )
