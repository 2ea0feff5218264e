"""The live segments of a topic as one table, whose columns all of its partitions share.

The rule: rows are sorted by partition and offset, so a partition is a range of rows. A column
becomes a numpy array once, when a caller first needs it: a topic has up to 100,000 partitions, and
a plan goes through all of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.logformat.array_types import Longs, Mask
from klog.logformat.arrow_values import text, to_numpy


class SegmentTable:
    """Segments with the columns of `segment_entries.SCHEMA`."""

    __slots__ = ("_is_appended", "_numbers", "table")

    def __init__(self, table: pa.Table) -> None:
        """Take the segments.

        Args:
            table: A table of `segment_entries.SCHEMA`, sorted by partition and offset.
        """
        self.table = table.combine_chunks()
        self._numbers: dict[str, Longs] = {}
        self._is_appended: Mask | None = None

    def numbers(self, column: str) -> Longs:
        """Return a column of numbers, of all segments.

        Args:
            column: The name of the column.
        """
        numbers = self._numbers.get(column)
        if numbers is None:
            numbers = self._numbers[column] = to_numpy(self.table[column])
        return numbers

    @property
    def is_appended(self) -> Mask:
        """Return which segments an append wrote: they have a record at each of their offsets.

        A segment that was adopted, compacted or merged may begin after its base offset.
        """
        if self._is_appended is None:
            self._is_appended = to_numpy(pc.equal(self.table["origin"], text("append")))
        return self._is_appended

    def rows_of_partition(self, partition: int) -> range:
        """Return the rows of the segments of a partition.

        Args:
            partition: The partition.
        """
        bounds = np.array([partition, partition + 1], np.int32)  # Another type would copy.
        start, end = np.searchsorted(self.numbers("partition"), bounds).tolist()
        return range(start, end)
