"""The rows of a table that is a copy of a topic.

The rule: a row says where it is from: topic, partition and offset come first, so that Delta keeps
their statistics, which it does for the first 32 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klog.jobs.shared.topic_batches import NOT_READ_OPTIONS, TopicBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class TableRows:
    """How the records of a batch become rows.

    Attributes:
        root: The root, as `load()` takes it.
        options: The options of the read, without those that name topics.
    """

    root: str
    options: Mapping[str, str] = field(repr=False)

    def of(self, spark: SparkSession, batch: TopicBatch) -> DataFrame:
        """Return the rows of a batch.

        Args:
            spark: The session.
            batch: The batch.
        """
        options = {
            name: text
            for name, text in self.options.items()
            if name.lower() not in NOT_READ_OPTIONS
        }
        reader = spark.read.format("klog").options(**options).options(**batch.read_options())
        return reader.option("includeHeaders", "true").load(self.root).select(*COLUMNS)
