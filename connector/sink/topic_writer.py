"""The rows of one topic that one task writes: gathered by partition, encoded, put as segments.

The rule: rows of a partition are gathered until they fill batches, and encoded once. While memory
lasts, the batches are those that one encoder over all rows of the partition would make, however the
rows arrive. When memory runs out, rows that are too few for a batch are encoded nevertheless. A
task puts one log file for each partition that it has rows for, and more only if segments roll.
Readers see none of them before a commit names them.

A row that cannot be written fails the write, or goes to the rejecter if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from klog.connector.commit_log.append_commit import StagedSegments
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.sink.batch_spool import BatchSpool
from klog.connector.sink.partitioning import Partitioning, split_by_partition
from klog.connector.sink.row_checks import RejectedRowsError, Rejecter, RowRules
from klog.connector.sink.segment_staging import SegmentStager
from klog.connector.sink.write_plan import TaskAttempt, TopicPlan
from klog.connector.sink.write_rows import (
    Rows,
    check_rows,
    concat_rows,
    input_columns,
)
from klog.connector.sink.write_settings import WriteSettings
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import element_bounds
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import GROUP_BYTES, encode_batches
from klog.logformat.batches.record_batch import HEADER_BYTES
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.sequence_numbers import increment_sequence

_COUNT = slice(57, 61)
"""Where a batch's header has the count of its records."""
_PART_BYTES, _ROW_BYTES = 2048, 48
"""Memory for each group of pending rows, and for each row besides key, value and headers."""


class _PendingRows:
    """Rows of one partition that are not encoded yet."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.min_bytes = 0

    def add(self, rows: Rows) -> None:
        if len(rows):
            self.parts.append(rows)
            self.min_bytes += int(rows.min_bytes.sum())

    def take(self) -> Rows:
        rows = concat_rows(self.parts)
        self.parts, self.min_bytes = [], 0
        return rows

    def copy(self) -> int:
        """Copy the rows out of the Arrow batches they came in; return their bytes in memory."""
        if not self.parts:
            return 0
        rows = self.take()
        self.add(rows.take(np.arange(len(rows))))
        return self.min_bytes + _PART_BYTES + _ROW_BYTES * len(rows)


class TopicWriter:
    """Writes the rows of one topic."""

    def __init__(
        self,
        plan: TopicPlan,
        task: TaskAttempt,
        root: str,
        store: WritableStore,
        spool: BatchSpool,
        rejecter: Rejecter | None = None,
    ) -> None:
        """Start without rows.

        Args:
            plan: The plan for the topic.
            task: The attempt that writes.
            root: The path of the root, as the store spells it.
            store: Where segments go.
            spool: Where encoded batches wait.
            rejecter: Takes the rows that cannot be written; None if they fail the write.
        """
        self._pending_bytes = 0
        self._plan, self._task, self._root = plan, task, root
        self._store, self._spool, self._rejecter = store, spool, rejecter
        self._rules = _row_rules(plan, task)
        sticky_partition = (plan.base_version + task.index) % plan.partitions
        self._partitioning = Partitioning(
            plan.partitions, plan.settings.partitioner, sticky_partition
        )
        self._pending: dict[int, _PendingRows] = {}
        self._stagers: dict[int, SegmentStager] = {}

    @property
    def pending_bytes(self) -> int:
        """Return the size in memory of the rows that are not encoded yet."""
        return self._pending_bytes

    def add(self, batch: pa.RecordBatch, numbers: Longs) -> None:
        """Take rows and encode those that fill batches.

        Args:
            batch: The rows.
            numbers: Their numbers among all rows of the task.

        Raises:
            OptionError: A column is wrong.
            KlogError: A row cannot be written, and there is no rejecter.
        """
        for rows in check_rows(batch, numbers, self._rules, self._rejecter):
            if self._rejecter is not None:
                self._add(self._reject_too_large(rows, self._rejecter))
            else:
                self._add(rows)

    def copy_pending(self) -> None:
        """Copy the pending rows out of the Arrow batches they came in, and release these."""
        self._pending_bytes = sum(pending.copy() for pending in self._pending.values())

    def encode_pending(self) -> None:
        """Encode all pending rows, also those that are too few for a batch."""
        for partition in self._pending:
            self._encode(partition, to_end=True)
        self._pending_bytes = 0

    def finish(self) -> StagedSegments:
        """Encode the pending rows, put the open segments and return all segments in order."""
        segments: list[SegmentEntry] = []
        for partition in sorted(self._pending):
            self._encode(partition, to_end=True)
            self._stagers[partition].close()
            segments += self._stagers[partition].segments
        return self._plan.staged(segments)

    def _add(self, rows: Rows) -> None:
        enough_bytes = max(2 * self._plan.settings.batch_bytes, GROUP_BYTES)
        self._pending_bytes += int(rows.min_bytes.sum()) + _ROW_BYTES * len(rows)
        for partition, partition_rows in split_by_partition(rows, self._partitioning.assign(rows)):
            pending = self._pending.setdefault(partition, _PendingRows())
            pending.add(partition_rows)
            self._pending_bytes += _PART_BYTES
            if pending.min_bytes > enough_bytes:
                self._encode(partition, to_end=False)

    def _reject_too_large(self, rows: Rows, rejecter: Rejecter) -> Rows:
        """Reject the rows that are too large: each candidate is encoded alone to learn its size."""
        limit = self._plan.settings.max_batch_bytes
        is_too_large = np.zeros(len(rows), bool)
        attributes = self._plan.batch_attributes(self._task, 0)
        batch_sizes: dict[int, int] = {}
        for row in np.flatnonzero(
            rows.min_bytes + HEADER_BYTES > limit - max(limit // 8, 64)
        ).tolist():
            records = _records(rows.slice(row, row + 1), 0)
            (batch,) = encode_batches(records, attributes)
            batch_sizes[row] = len(batch)
            is_too_large[row] = len(batch) > limit
        if not is_too_large.any():
            return rows
        rejecter(
            input_columns(rows),
            RejectedRowsError(is_too_large, lambda row: self._too_large(batch_sizes[row])),
            rows.numbers,
        )
        accepted = np.flatnonzero(~is_too_large)
        partition = None if rows.partition is None else rows.partition.take(pa.array(accepted))
        return replace(rows.take(accepted), partition=partition)

    def _encode(self, partition: int, *, to_end: bool) -> None:
        """Encode the pending rows of a partition; unless `to_end`, only those that fill batches."""
        pending = self._pending[partition]
        if not pending.parts:
            return
        rows = pending.take()
        stager = self._stagers.get(partition)
        if stager is None:
            stager = SegmentStager(
                self._plan, self._task, partition, self._root, self._store, self._spool
            )
            self._stagers[partition] = stager
        end_bytes = element_bounds(rows.min_bytes)
        last_full_bytes = end_bytes[-1] - (self._plan.settings.batch_bytes - HEADER_BYTES)
        done = 0
        for batch, count in self._encode_rows(rows, stager):
            stager.add(batch, rows.timestamp_ms[done : done + count])
            done += count
            if not to_end and end_bytes[done] >= last_full_bytes:
                break
        pending.add(rows.slice(done, len(rows)))

    def _encode_rows(self, rows: Rows, stager: SegmentStager) -> Iterator[tuple[bytes, int]]:
        attributes = stager.next_attributes()
        records = _records(rows, stager.next_offset)
        limit = self._plan.settings.max_batch_bytes
        done = 0
        for batch, count in _encode_within(records, attributes, limit):
            if count == 1 and len(batch) > limit:
                row = int(rows.numbers[done])
                raise KlogError(f"{self._rules.place(row)}: {self._too_large(len(batch))}")
            yield batch, count
            done += count

    def _too_large(self, size_bytes: int) -> str:
        settings = self._plan.settings
        name = "segment.bytes" if _is_bound_by_segment(settings) else "max.message.bytes"
        return (
            f"the record makes a batch of {size_bytes} bytes, {name} allows "
            f"{settings.max_batch_bytes}; raise it, or make the record smaller"
        )


def _records(rows: Rows, first_offset: int) -> Records:
    return Records(pa.array(rows.timestamp_ms), rows.key, rows.value, rows.headers, first_offset)


def _encode_within(
    records: Records, attributes: BatchAttributes, limit: int
) -> Iterator[tuple[bytes, int]]:
    """Yield batches of at most `limit` bytes, or of one record, with their record counts.

    If compression makes a batch larger than that, its records are encoded again as smaller ones.
    """
    done = 0
    for batch in encode_batches(records, attributes):
        count = int.from_bytes(batch[_COUNT], "big")
        if len(batch) <= limit or count == 1:
            yield batch, count
        else:
            smaller = replace(
                attributes,
                batch_bytes=attributes.batch_bytes // 2,
                base_sequence=increment_sequence(attributes.base_sequence, done),
            )
            yield from _encode_within(records.slice(done, done + count), smaller, limit)
        done += count


def _is_bound_by_segment(settings: WriteSettings) -> bool:
    return settings.max_batch_bytes == settings.limits.segment_bytes


def _row_rules(plan: TopicPlan, task: TaskAttempt) -> RowRules:
    """Return the topic's rules for rows; with LogAppendTime their own timestamps do not count."""
    settings, now_ms = plan.settings, task.now_ms
    before_max_ms, after_max_ms = settings.before_max_ms, settings.after_max_ms
    if settings.is_append_time:
        before_max_ms = after_max_ms = None
    return RowRules(
        topic=plan.topic,
        task=task.name,
        partitions=plan.partitions,
        now_ms=now_ms,
        needs_key=settings.is_compacted,
        min_timestamp_ms=None if before_max_ms is None else now_ms - before_max_ms,
        max_timestamp_ms=None if after_max_ms is None else now_ms + after_max_ms,
        is_new=not plan.topic_id,
    )
