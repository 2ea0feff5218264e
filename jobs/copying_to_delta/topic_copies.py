"""The copies of one run: each topic into its table, any number of times, and what they did.

The rule: several topics may have one table, so tables are counted by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.commit_log.commit_info import random_uuid
from klog.errors import KlogError
from klog.jobs.copying_to_delta.batch_writer import BatchWriter
from klog.jobs.copying_to_delta.copy_topic import CopyResult, TableOptions, TopicCopy
from klog.jobs.copying_to_delta.dead_letter_table import DeadLetterTable
from klog.jobs.copying_to_delta.table_names import table_of_topic
from klog.jobs.copying_to_delta.table_rows import TableRows
from klog.jobs.copying_to_delta.to_delta_report import CopiedPartition, CopiedRows
from klog.jobs.shared.delta.delta_session import delta_errors
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.job_failures import FailedTopic, Failure
from klog.jobs.shared.topic_batches import TopicReader
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class CopyTables:
    """Where copies go, and how.

    Attributes:
        table: The table, as the user has named it; `{topic}` in it stands for the topic's name.
        dead_letter_table: The same for records that cannot be decoded; None for no such table.
        mode: `append` or `upsert`.
        merge_schema: Whether new columns are added to a table.
        options: How a missing table is created.
    """

    table: str
    dead_letter_table: str | None
    mode: str
    merge_schema: bool
    options: TableOptions


class TopicCopies:
    """The copies of one run."""

    def __init__(
        self, spark: SparkSession, reader: TopicReader, rows: TableRows, tables: CopyTables
    ) -> None:
        """Take what reads topics, what makes rows of records, and where these go."""
        self._spark, self._reader, self._rows, self._tables = spark, reader, rows, tables
        self._partitions: dict[tuple[str, str, int], CopiedPartition] = {}
        self._changed: dict[str, str] = {}
        self.rows = CopiedRows()

    @property
    def partitions(self) -> tuple[CopiedPartition, ...]:
        """Return what was copied of each partition."""
        return tuple(self._partitions.values())

    def plan(self, topic: str) -> None:
        """Add what would be copied of a topic.

        Args:
            topic: The name of the topic.
        """
        with delta_errors(f"topic {topic}"):
            self._add(self._copy_of(topic).plan())

    def copy(self, topic: str) -> None:
        """Copy what a topic has now.

        Args:
            topic: The name of the topic.
        """
        with delta_errors(f"topic {topic}"):
            result = self._copy_of(topic).copy(self._tables.options)
        self._add(result)
        if result.rows.batches:
            self._changed[table_of_topic(self._tables.table, topic)] = topic

    def order_rows(self, zorder_by: Sequence[str]) -> Iterator[FailedTopic]:
        """Let Delta order the rows of each table that got some, and yield what failed.

        Args:
            zorder_by: The columns.
        """
        for table, topic in sorted(self._changed.items()):
            try:
                with delta_errors(f"table {table}: its rows are copied, but OPTIMIZE failed"):
                    DeltaTarget(self._spark, table).optimize(zorder_by)
            except KlogError as exc:
                remedy = f"run OPTIMIZE ... ZORDER BY ({', '.join(zorder_by)}) by itself"
                yield FailedTopic(topic, Failure(without_passwords(str(exc)), None, None, remedy))

    def _copy_of(self, topic: str) -> TopicCopy:
        tables = self._tables
        target = DeltaTarget(self._spark, table_of_topic(tables.table, topic))
        writer = BatchWriter(target.name, tables.mode, merge_schema=tables.merge_schema)
        dead_letters = None
        if tables.dead_letter_table is not None:
            name = table_of_topic(tables.dead_letter_table, topic)
            dead_letters = DeadLetterTable(DeltaTarget(self._spark, name))
        return TopicCopy(
            self._spark,
            topic,
            self._reader,
            target,
            self._rows,
            writer,
            dead_letters,
            random_uuid,
        )

    def _add(self, result: CopyResult) -> None:
        self.rows += result.rows
        for part in result.partitions:
            key = (part.table, part.topic, part.partition)
            first = self._partitions.get(key, part)
            self._partitions[key] = replace(part, start_offset=first.start_offset)
