"""Spark's batch reader over klog's plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from klog.connector.log.roots import open_root
from klog.connector.options import read_options
from klog.connector.source import scan

if TYPE_CHECKING:
    import pyarrow as pa


class KlogBatchReader(DataSourceReader):
    """Reads pinned offset ranges; `pinned` is what `load` saw, None where that was not to be told.

    `pushFilters` is never overridden: Spark 4.2 shares a filtered reader among all scans of a
    DataFrame and returns wrong rows (SPARK's Python path, `docs/adr/0004`).
    """

    def __init__(self, given: Mapping[str, str], pinned: scan.Pinned | None) -> None:
        """Check the options; nothing is read yet."""
        self._options = read_options(given)
        self._directories = scan.log_directories(given)
        self._pinned = pinned
        self._reader = scan.reader(self._directories, self._options)

    def partitions(self) -> list[InputPartition]:
        """Plan the read, one task a list of slices."""
        root = open_root(self._directories, self._options.storage)
        pinned = self._pinned if self._pinned is not None else scan.pin(root, self._options)
        return [InputPartition(task) for task in scan.slices(root, pinned, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's slices; Spark passes an empty partition where there is no task."""
        return self._reader.read(partition.value or [])
