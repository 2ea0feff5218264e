"""Keys that a topic has and a table does not: what a snapshot that starts a copy again deletes.

The rule: after such a snapshot, the last values of the topic's keys are the rows of the table. A
key is in the topic if its last record in a partition is not a tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klog.jobs.copying_from_delta.encoded_rows import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ_OPTIONS = ("storage.", "engine")
"""The options of a write that a read has, too, in lower case."""


def with_gone_keys(
    spark: SparkSession, records: DataFrame, root: str, topic: str, options: Mapping[str, str]
) -> DataFrame:
    """Return the records of a snapshot, and a tombstone for each key that it does not have.

    Args:
        spark: The session.
        records: The records, as columns of a write.
        root: The root.
        topic: The topic, which exists.
        options: The options of the writes.
    """
    from pyspark.sql import functions as sf

    read = {name: text for name, text in options.items() if name.lower().startswith(_READ_OPTIONS)}
    rows = spark.read.format("klog").options(**read).option("subscribe", topic).load(root)
    by_key = rows.where("key is not null").groupBy("key", "partition")
    last = by_key.agg(sf.max_by(sf.col("value").isNotNull(), "offset").alias("has_value"))
    keys = last.where("has_value").select("key").distinct()
    known = records.select(sf.col(KEY).cast("binary").alias("key")).distinct()
    gone = keys.join(known, "key", "left_anti")
    kind = records.schema[KEY].dataType
    tombstones = gone.select(sf.col("key").cast(kind).alias(KEY))
    return records.unionByName(tombstones, allowMissingColumns=True)
