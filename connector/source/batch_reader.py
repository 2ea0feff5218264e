"""Spark's batch reader over klog's plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.offset_ranges import ResolvedRange
from klog.connector.source.read_schema import with_schema
from klog.connector.spark_errors import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class KlogBatchReader(DataSourceReader):
    """Reads the offset ranges that `load()` resolved.

    `pushFilters` is never overridden: Spark 4.2 shares a filtered reader among all scans of a
    DataFrame and returns wrong rows (`docs/adr/0004-reading-raw-logs.md`).
    """

    def __init__(
        self,
        options: Mapping[str, str],
        resolved: list[ResolvedRange] | None,
        schema: StructType | None = None,
    ) -> None:
        """Check the options and the schema; nothing is read yet.

        Args:
            options: The options as Spark gives them.
            resolved: What `load()` resolved; None if it could not.
            schema: The columns to read; None for what the options say.
        """
        self._options = with_schema(parse_read_options(options), schema)
        self._directories = scan_planner.log_directories(options)
        self._resolved = resolved
        self._reader = scan_planner.make_reader(self._directories, self._options)

    @sentence_first()
    def partitions(self) -> list[InputPartition]:
        """Plan the read: a partition of Spark's for each task."""
        tasks = scan_planner.plan_load(self._directories, self._resolved, self._options)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See `DataSourceReader.read`. Spark passes an empty partition if the plan has no task."""
        with sentence_first():
            yield from self._reader.read(partition.value or [])
