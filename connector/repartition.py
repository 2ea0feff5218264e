"""Rows shuffled to the partitions they will be written to, so that a write leaves few files.

The rule: a row goes where the sink would put it: its column `partition`, else Kafka's murmur2 of
the key; a row without either stays with the others of its task. What was chosen is told to the sink
by the column `partition`. Rows of one task that go to one partition stay together, in their order
where Spark keeps it; of rows of several tasks its shuffle promises none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas.functions import arrow_udf

from klog.connector.embedded import open_log
from klog.connector.sink.columns import as_bytes
from klog.errors import OptionError
from klog.logformat.partitioner import key_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from pyspark.sql import Column, DataFrame


def repartition(
    df: DataFrame, root: str | PathLike[str], topic: str, storage: Mapping[str, str]
) -> DataFrame:
    """Shuffle rows by the partition of a topic that they go to, one Spark partition each.

    How many partitions it has now decides: do not add any before the write, for it takes the column
    as it is. Raises `OptionError` for a topic that is not there.
    """
    partitions = len(open_log(root, storage).describe(topic).partitions)
    columns = df.columns
    if "key" not in columns and "partition" not in columns:
        raise OptionError("klog.repartition: there is neither a column key nor a column partition")
    chosen = functions.pmod(functions.spark_partition_id(), functions.lit(partitions)).cast("int")
    if "key" in columns:
        chosen = functions.coalesce(_of_key(partitions, df["key"]), chosen)
    if "partition" in columns:
        chosen = functions.coalesce(df["partition"], chosen)
    placed = df.withColumn("partition", chosen)
    # What is out of range is the sink's to refuse.
    target = functions.pmod(placed["partition"], functions.lit(partitions))
    return placed.repartitionById(partitions, target)


def _of_key(partitions: int, key: Column) -> Column:
    """Give the partition of each key; null for none."""

    def of(keys: pa.Array) -> pa.Array:
        return key_partitions(as_bytes(keys).cast(pa.binary()), partitions).cast(pa.int32())

    # PySpark names no overload of a plain function over arrays.
    placed: Column = arrow_udf(of, "int")(key)  # type: ignore[call-overload]
    return placed
