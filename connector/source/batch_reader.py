"""Spark's batch reader over klog's plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from klog.connector.options.read_options import parse_read_options
from klog.connector.options.spark_paths import log_directories
from klog.connector.source.jvm_request import refuse_missing_shim
from klog.connector.source.load_plan import LoadPlan
from klog.connector.source.read_schema import with_schema
from klog.connector.source.task_reader import TaskReader, make_reader
from klog.connector.spark_errors import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from klog.connector.source.slice_reader import SliceReader

_log = logging.getLogger(__name__)


class KlogBatchReader(DataSourceReader):
    """Reads the offset ranges that `load()` resolved.

    `pushFilters` is never overridden: Spark 4.2 shares a filtered reader among all scans of a
    DataFrame and returns wrong rows (`docs/adr/0004-reading-raw-logs.md`).
    """

    def __init__(
        self,
        options: Mapping[str, str],
        load_plan: LoadPlan | None,
        schema: StructType | None = None,
        *,
        is_loaded: bool = False,
    ) -> None:
        """Check the options and the schema; nothing is read yet.

        Args:
            options: The options as Spark gives them.
            load_plan: What `load()` resolved; None if it could not.
            schema: The columns to read; None for what the options say.
            is_loaded: Whether `load()` has parsed the options, and gave their warnings.
        """
        read_options = with_schema(parse_read_options(options, is_loaded=is_loaded), schema)
        if load_plan is not None:
            read_options = replace(read_options, as_of=load_plan.as_of)
        self._options = read_options
        self._directories = log_directories(options)
        self._load_plan = load_plan
        self._reader = TaskReader(make_reader(self._directories, self._options))

    def __reduce__(self) -> tuple[type[TaskReader], tuple[SliceReader]]:
        """Return what Spark sends to tasks: nothing that plans."""
        return TaskReader, (self._reader.slice_reader,)

    @sentence_first()
    def partitions(self) -> list[InputPartition]:
        """Plan the read: a partition of Spark's for each task."""
        refuse_missing_shim(self._options)
        self._warn()
        tasks = self._load_plan.recent_tasks() if self._load_plan else None
        if tasks is None:
            from klog.connector.source import scan_planner

            tasks = scan_planner.plan_load(self._directories, self._load_plan, self._options)
        return [InputPartition(task) for task in tasks]

    def _warn(self) -> None:
        """Log what `load()` found that a batch has to say."""
        for warning in self._load_plan.warnings if self._load_plan else ():
            _log.warning(warning)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See `DataSourceReader.read`."""
        return self._reader.read(partition)
