"""Copy one topic into its table, batch by batch.

The rule: before each batch the table is asked where it is, so nothing that this process remembers
decides. If another run or another writer is in the way, the table is asked again. A run that was
killed at any step has either committed its batch or has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from klog.connector.back_off import back_off
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.system_clock import now_ms
from klog.errors import CommitConflictError
from klog.jobs.copying_to_delta.batch_writer import UPSERT, BatchWriter, check_supported
from klog.jobs.copying_to_delta.commit_note import CommitNote, parse_commit_note
from klog.jobs.copying_to_delta.completed_rows import completed_rows
from klog.jobs.copying_to_delta.copied_topics import CopiedTopics, find_copied_topics
from klog.jobs.copying_to_delta.dead_letter_table import DeadLetterTable
from klog.jobs.copying_to_delta.noted_offsets import find_noted_offsets
from klog.jobs.copying_to_delta.table_rows import IS_TOMBSTONE, TableRows
from klog.jobs.copying_to_delta.to_delta_report import CopiedPartition, CopiedRows
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.topic_batches import CopiedOffsets, TopicBatch, TopicReader
from klog.logformat.topic_partition import TopicPartition
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_CONFLICTS = 12
"""So many conflicts in a row end a job: another writer changes the table all the time."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a missing table is created."""

    properties: Mapping[str, str]
    cluster_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What was copied of a topic."""

    partitions: tuple[CopiedPartition, ...]
    rows: CopiedRows


class TopicCopy:
    """The copy of one topic in one table."""

    def __init__(
        self,
        spark: SparkSession,
        topic: str,
        reader: TopicReader,
        target: DeltaTarget,
        rows: TableRows,
        writer: BatchWriter,
        dead_letters: DeadLetterTable | None,
        make_id: Callable[[], str],
    ) -> None:
        """Take what reads the topic and what writes the table; nothing is looked at yet."""
        self._spark, self._topic, self._reader = spark, topic, reader
        self._target, self._rows, self._writer = target, rows, writer
        self._dead_letters, self._make_id = dead_letters, make_id

    def plan(self) -> CopyResult:
        """Return what would be copied now."""
        copied = self._copied_offsets(self._find_copied())
        batch = self._reader.next_batch(self._topic, copied, is_limited=False)
        return CopyResult(self._partitions(batch.starts, batch.end), CopiedRows())

    def copy(self, options: TableOptions) -> CopyResult:
        """Copy what the topic has now.

        Args:
            options: How the table is created, if it does not exist.

        Raises:
            DataLossError: Records that the table does not have are gone.
            CommitConflictError: Other writers change the table all the time.
        """
        until = self._reader.log_ends(self._topic).offsets
        starts: Mapping[TopicPartition, int] | None = None
        rows, conflicts = CopiedRows(), 0
        while True:
            copied = self._find_copied()
            batch = self._reader.next_batch(self._topic, self._copied_offsets(copied), until)
            if starts is None:
                starts = batch.starts
            if batch.is_empty and self._is_anchored(copied):
                return CopyResult(self._partitions(starts, batch.end), rows)
            try:
                if copied is None:
                    self._create(batch, options)
                    continue
                written = self._write(batch, copied)
                conflicts = 0
                if written is None:
                    continue
                rows += written
                if batch.has_reached(until):
                    return CopyResult(self._partitions(starts, batch.end), rows)
            except CommitConflictError:
                conflicts += 1
                if conflicts == MAX_CONFLICTS:
                    raise
                back_off(conflicts)

    def _is_anchored(self, copied: CopiedTopics | None) -> bool:
        """Return whether the next run starts at the same offsets without a commit of this one."""
        if copied is None:
            return self._rows.needs_a_sample
        known = copied.topics.get(self._topic)
        if known is None or not known.has_all_partitions:
            return False
        return copied.has_lasting_note(now_ms())

    def _find_copied(self) -> CopiedTopics | None:
        """Return where the table is; None if there is no table."""
        if not self._target.exists():
            return None
        return find_copied_topics(self._target, [self._topic], self._writer.mode)

    def _copied_offsets(self, copied: CopiedTopics | None) -> CopiedOffsets | None:
        return None if copied is None else copied.topics.get(self._topic)

    def _create(self, batch: TopicBatch, options: TableOptions) -> None:
        schema = self._rows.of(self._spark, batch, None).rows.schema
        check_supported(self._target.name, schema)
        with conflicts_of_delta(self._target.name):
            self._target.create(schema, options.properties, options.cluster_by)

    def _write(self, batch: TopicBatch, copied: CopiedTopics) -> CopiedRows | None:
        """Write a batch; return what its commit did, None if another run was first."""
        topics = {topic: known.offsets for topic, known in copied.topics.items()}
        topics[self._topic] = replace(batch.end, batch_start={})
        note = CommitNote(
            self._make_id(),
            self._writer.mode,
            copied.snapshot.table_id,
            self._topic,
            copied.snapshot.version,
            topics,
        )
        spark = self._writer.session(self._spark)
        schema = copied.snapshot.schema
        is_upsert = self._writer.mode == UPSERT
        batch_rows = self._rows.of(spark, batch, schema, with_tombstones=is_upsert)
        rows = batch_rows.rows
        self._writer.check_columns(rows.drop(IS_TOMBSTONE).schema, schema)
        transaction = copied.transaction(batch)
        if self._dead_letters is not None and batch_rows.dead_letters is not None:
            if not copied.is_next(transaction, self._target.snapshot()):
                return None
            with conflicts_of_delta(self._dead_letters.name):
                self._dead_letters.write(batch, batch_rows.dead_letters)
        with conflicts_of_delta(self._target.name):
            self._writer.write(spark, completed_rows(rows, schema), note, transaction)
        return self._written(note)

    def _written(self, note: CommitNote) -> CopiedRows | None:
        """Return what the commit with a note did; None if there is none.

        Raises:
            KlogError: A RESTORE came between, so that its rows are at a wrong place.
        """
        name, snapshot = self._target.name, self._target.snapshot()
        commits = self._target.commits(snapshot.version)
        later = list(takewhile(lambda commit: commit.version > note.base_version, commits))
        find_noted_offsets(later, name, snapshot.table_id)
        for commit in later:
            written = parse_commit_note(commit.user_metadata, name, commit.version)
            if written is not None and written.batch == note.batch:
                return CopiedRows.of_commit(commit.metrics)
        return None

    def _partitions(
        self, starts: Mapping[TopicPartition, int], end: StreamOffsets
    ) -> tuple[CopiedPartition, ...]:
        return tuple(
            CopiedPartition(
                name.topic,
                name.partition,
                without_passwords(self._target.name),
                starts.get(name, end_offset),
                end_offset,
            )
            for name, end_offset in sorted(end.next_offsets.items())
        )


@contextmanager
def conflicts_of_delta(table: str) -> Iterator[None]:
    """Translate the conflicts of Delta's concurrent writers, after which a job plans again.

    Args:
        table: The table, for the error.
    """
    from delta import exceptions

    conflicts = (
        exceptions.DeltaConcurrentModificationException,
        exceptions.ConcurrentWriteException,
        exceptions.MetadataChangedException,
        exceptions.ProtocolChangedException,
        exceptions.ConcurrentAppendException,
        exceptions.ConcurrentDeleteReadException,
        exceptions.ConcurrentDeleteDeleteException,
        exceptions.ConcurrentTransactionException,
    )
    try:
        yield
    except conflicts as exc:
        raise CommitConflictError(
            f"table {table}: other writers have changed it {MAX_CONFLICTS} times in a row while "
            "a batch was written. Run the job again when they are done"
        ) from exc
