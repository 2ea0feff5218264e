"""Shuffle rows by the partitions that they will be written to, so that a write leaves few files.

The rule: a row goes where the sink would put it: to its column `partition`, else by Kafka's murmur2
of its key. A row without either stays with the other rows of its task. The column `partition` tells
the sink the result. Rows of one task for one partition stay together, in their order as far as
Spark keeps it; the shuffle promises no order between tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas.functions import arrow_udf

from klog.connector.embedded import open_log
from klog.connector.sink.write_columns import as_bytes, known_name
from klog.errors import OptionError
from klog.logformat.partitioner import key_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from pyspark.sql import Column, DataFrame


def repartition(
    df: DataFrame, root: str | PathLike[str], topic: str, storage: Mapping[str, str]
) -> DataFrame:
    """Shuffle rows by the partition of a topic that they go to, one Spark partition for each.

    The topic's number of partitions now decides. Do not add partitions before the write: it takes
    the column `partition` unchanged.

    Args:
        df: The rows, with a column `key` or `partition`.
        root: The path or URL of the root.
        topic: The topic.
        storage: The `storage.*` options, without that prefix.

    Raises:
        OptionError: There is no such topic, or neither column.
    """
    partitions = len(open_log(root, storage).describe(topic).partitions)
    columns = [known_name(name) for name in df.columns]
    if "key" not in columns and "partition" not in columns:
        raise OptionError(
            "klog.repartition: there is neither a column key nor a column partition. Add one, or "
            "write the rows without klog.repartition"
        )
    partition = functions.pmod(functions.spark_partition_id(), functions.lit(partitions))
    partition = partition.cast("int")
    if "key" in columns:
        partition = functions.coalesce(_partition_of_key(partitions, df["key"]), partition)
    if "partition" in columns:
        partition = functions.coalesce(df["partition"], partition)
    # Of a column that is never null the sink knows that the rows need no other shuffle.
    partition = functions.coalesce(partition, functions.lit(0))
    rows = df.withColumn("partition", partition)
    # The sink refuses a partition that is out of range.
    target = functions.pmod(rows["partition"], functions.lit(partitions))
    return rows.repartitionById(partitions, target)


def _partition_of_key(partitions: int, key: Column) -> Column:
    """Return the partition of each key; null for a null key."""

    def hash_keys(keys: pa.Array) -> pa.Array:
        return key_partitions(as_bytes(keys).cast(pa.binary()), partitions).cast(pa.int32())

    # PySpark has no overload for a plain function over arrays.
    column: Column = arrow_udf(hash_keys, "int")(key)  # type: ignore[call-overload]
    return column
