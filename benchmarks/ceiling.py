"""A Python data source that does nothing but hand ready-made Arrow batches to Spark.

The rule: nothing inside the loop. What it reaches is what Spark's way from Python to its rows
allows to any Python data source of klog's columns, so klog is measured against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from klog.connector.options.read_columns import COLUMNS
from klog.connector.source.row_schema import arrow_schema

# Spark's workers need not find this package: the classes travel by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

NAME = "ready_batches"
KEY_BYTES = 16
ARROW_SCHEMA = arrow_schema([name for name in COLUMNS if name != "headers"])


class ReadyBatches(DataSource):
    """Options: `shapes`, a JSON list of tasks, each the row counts of its batches; `valueBytes`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset bigint, "
            "timestamp timestamp, timestampType int"
        )

    def reader(self, schema: StructType) -> ReadyBatchesReader:
        shapes: list[list[int]] = json.loads(self.options["shapes"])
        return ReadyBatchesReader(shapes, int(self.options["valueBytes"]))


class ReadyBatchesReader(DataSourceReader):
    """Yields batches of the row counts of each task."""

    def __init__(self, shapes: list[list[int]], value_bytes: int) -> None:
        self._shapes = shapes
        self._value_bytes = value_bytes

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(shape) for shape in self._shapes]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        ready_batches = {
            rows: ready_batch(rows, self._value_bytes) for rows in set(partition.value)
        }
        for rows in partition.value:
            yield ready_batches[rows]


def ready_batch(rows: int, value_bytes: int) -> pa.RecordBatch:
    """Make a batch like one of klog's: same columns, same sizes of keys and values."""
    times = pa.array(np.arange(rows, dtype=np.int64) * 1000).view(pa.timestamp("us", "UTC"))
    columns = {
        "key": pa.repeat(pa.scalar(bytes(KEY_BYTES), pa.binary()), rows),
        "value": pa.repeat(pa.scalar(bytes(value_bytes), pa.binary()), rows),
        "topic": pa.repeat(pa.scalar("records"), rows),
        "partition": pa.array(np.zeros(rows, np.int32)),
        "offset": pa.array(np.arange(rows, dtype=np.int64)),
        "timestamp": times,
        "timestampType": pa.array(np.zeros(rows, np.int32)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=ARROW_SCHEMA)
