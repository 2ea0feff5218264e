"""Records that cannot be decoded, in a Delta table of their own.

The rule: the dead letters of a batch are written before its rows, and replace what the table has in
the offsets of the batch. So a batch that is written again, in part or in whole, has each of them
once, and no batch is committed without its dead letters. The id of the topic is part of a row, so
topics of one name, of several roots or one after the other, keep their dead letters apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.topic_batches import TopicBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeadLetterTable:
    """The table of the dead letters of a job."""

    def __init__(self, target: DeltaTarget) -> None:
        """Take the table, which may not exist yet."""
        self._target = target

    @property
    def name(self) -> str:
        """Return the table as the user has named it."""
        return self._target.name

    def write(self, batch: TopicBatch, dead_letters: DataFrame) -> None:
        """Write the dead letters of a batch; nothing if there is none and never was.

        Args:
            batch: The batch.
            dead_letters: Its records that cannot be decoded, as bytes, with the column `reason`.
        """
        from pyspark.sql import functions as sf

        if batch.is_empty:
            return
        dead_letters = dead_letters.withColumn("topic_id", sf.lit(batch.topic_id).cast("string"))
        if not self._target.exists():
            if dead_letters.isEmpty():
                return
            self._target.create(dead_letters.schema, {}, ())
        condition = _condition(batch)
        has_some = not self._target.rows().where(condition).isEmpty()
        if has_some or not dead_letters.isEmpty():
            self._target.replace(dead_letters.write, condition)


def _condition(batch: TopicBatch) -> str:
    """Return the condition of the rows that are from the offsets of a batch."""
    ranges = (
        f"(partition = {name.partition} AND offset >= {start} AND offset < {end})"
        for name, start, end in batch.ranges()
    )
    is_id = "topic_id IS NULL" if batch.topic_id is None else f"topic_id = '{batch.topic_id}'"
    return f"topic = '{batch.topic}' AND {is_id} AND ({' OR '.join(ranges)})"
