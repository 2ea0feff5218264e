"""A Python stream source that does nothing: each micro-batch has one ready-made row.

The rule: no file is opened and nothing is computed, so what a micro-batch of it takes is what Spark
takes for any Python source; klog is measured against it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from benchmarks.ceiling import ReadyBatches, ready_batch

# Spark's workers need not find this package: the classes travel by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

NAME = "ready_stream"
VALUE_BYTES = 100


class ReadyStream(DataSource):
    """Option `batches`: after so many micro-batches there is nothing new."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return ReadyBatches(self.options).schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ReadyStreamReader(int(self.options["batches"]))


class ReadyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Counts micro-batches; a task yields one row."""

    def __init__(self, batches: int) -> None:
        self._batches = batches

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"batch": min(start["batch"] + 1, self._batches)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield ready_batch(1, VALUE_BYTES)

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass
