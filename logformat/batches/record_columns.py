"""Decoded records as columns: Arrow for keys, values and headers, numpy for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Longs, Mask, SignedBytes


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Decoded records, a row each; a column that was not requested is None.

    Attributes:
        offset: The offsets.
        timestamp_ms: The timestamps.
        timestamp_type: 0 CreateTime, 1 LogAppendTime, -1 none, as in v0.
        key: Null if the record has a null key.
        value: Null if the record has a null value.
        headers: Of `record_headers.HEADERS_TYPE`, null if the record has no headers.
        is_tombstone: Whose value is null.
    """

    offset: Longs
    timestamp_ms: Longs | None
    timestamp_type: SignedBytes | None
    key: pa.BinaryArray | None
    value: pa.BinaryArray | None
    headers: pa.ListArray | None
    is_tombstone: Mask | None = None

    @property
    def size_bytes(self) -> int:
        """Return the memory that keys, values and headers take."""
        columns = (self.key, self.value, self.headers)
        return sum(column.nbytes for column in columns if column is not None)

    def slice(self, start: int, end: int) -> RecordColumns:
        """Return the records from number `start` to before `end`.

        Args:
            start: The number of the first record.
            end: The number after that of the last record.
        """

        def cut(column: Any) -> Any:
            return None if column is None else column[start:end]

        return RecordColumns(
            cut(self.offset),
            cut(self.timestamp_ms),
            cut(self.timestamp_type),
            cut(self.key),
            cut(self.value),
            cut(self.headers),
            cut(self.is_tombstone),
        )

    @staticmethod
    def concat(parts: Sequence[RecordColumns]) -> RecordColumns:
        """Return the records of several parts, in order.

        Args:
            parts: At least one; all have the same columns.
        """

        def concat_column(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if columns[0] is None:
                return None
            is_arrow = isinstance(columns[0], pa.Array)
            return pa.concat_arrays(columns) if is_arrow else np.concatenate(columns)

        return RecordColumns(*(concat_column(field.name) for field in fields(RecordColumns)))
