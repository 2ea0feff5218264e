"""Records to write, as Arrow columns, and what their columns must be."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column
from klog.logformat.batches.record_batch import MAX_OFFSET, MAX_OFFSET_DELTA
from klog.logformat.batches.record_headers import HEADERS_TYPE, is_headers_type

MAX_FIRST_OFFSET = MAX_OFFSET - MAX_OFFSET_DELTA
"""The highest base offset of a batch: whatever its deltas, the offsets of its records exist."""
_TYPES = {"timestamp_ms": pa.int64(), "key": pa.binary(), "value": pa.binary()}


@dataclass(frozen=True, slots=True)
class Records:
    """Records to write, a row each; columns are Arrow arrays, chunked or not.

    Attributes:
        timestamp_ms: int64, -1 for a record without a timestamp.
        key: Binary, null for a null key.
        value: Binary, null for a null value.
        headers: Of `HEADERS_TYPE`, null or empty for a record without headers; None if no record
            has headers.
        offset: The offset of the first record, and the others follow without gaps; or rising int64
            offsets.
        is_from_log: Whether the records were written before; then any timestamp is allowed.

    Raises:
        ValueError: A column has another type, or lengths differ. The bounds of arrays that were
            made of buffers by hand are not checked (`pyarrow.Array.validate` does that).
    """

    timestamp_ms: Column
    key: Column
    value: Column
    headers: Column | None = None
    offset: int | Longs = 0
    is_from_log: bool = False

    def __post_init__(self) -> None:
        """Check types and lengths."""
        for name, expected_type in _TYPES.items():
            if (column_type := getattr(self, name).type) != expected_type:
                raise ValueError(f"{name} is {column_type}; cast it to {expected_type}")
        if self.headers is not None and not is_headers_type(self.headers.type):
            raise ValueError(f"headers are {self.headers.type}; cast them to {HEADERS_TYPE}")
        for name in ("key", "value", "headers"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self):
                raise ValueError(f"{name} has {len(column)} rows, timestamp_ms has {len(self)}")
        if not isinstance(self.offset, np.ndarray):
            # A numpy integer is one offset as well.
            object.__setattr__(self, "offset", index(self.offset))
        self._check_offset()

    def _check_offset(self) -> None:
        if isinstance(self.offset, int):
            if not 0 <= self.offset <= MAX_FIRST_OFFSET - len(self):
                raise ValueError(f"offset {self.offset} is out of range for {len(self)} records")
        elif self.offset.ndim != 1 or self.offset.dtype.kind not in "iu":
            raise ValueError(f"offsets are {self.offset.ndim}-dimensional {self.offset.dtype}")
        elif len(self.offset) != len(self):
            raise ValueError(f"{len(self.offset)} offsets for {len(self)} rows")

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.timestamp_ms)

    def slice(self, start: int, end: int) -> Records:
        """Return the rows from `start` to before `end`.

        Args:
            start: The first row.
            end: The row after the last one.
        """
        count = end - start
        headers = None if self.headers is None else self.headers.slice(start, count)
        return Records(
            self.timestamp_ms.slice(start, count),
            self.key.slice(start, count),
            self.value.slice(start, count),
            headers,
            self.offset + start if isinstance(self.offset, int) else self.offset[start:end],
            self.is_from_log,
        )

    def offsets(self, start: int, end: int) -> Longs:
        """Return the offsets of the rows from `start` to before `end`.

        Args:
            start: The first row.
            end: The row after the last one.
        """
        if isinstance(self.offset, int):
            return np.arange(self.offset + start, self.offset + end, dtype=np.int64)
        return self.offset[start:end].astype(np.int64, copy=False)
