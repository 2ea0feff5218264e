"""One task's rows of one topic: gathered by partition, encoded in batches, put as segments.

The rule: rows of a partition are gathered until they fill batches, and encoded once. While there is
room the batches are those that one encoder over all of the partition's rows would make, however the
rows came; rows that stay too few for a batch when memory runs out are encoded as they are. A task
puts one log for each partition that it has rows for, more only where segments roll, and only once
rows and batches are whole. Nothing that it puts is visible before a commit names it.

A row that cannot be written fails the write, or is set aside where there is a place for such rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from klog.connector.log.entries import Entry
from klog.connector.log.operations import Staged
from klog.connector.sink.placement import Placement, grouped
from klog.connector.sink.plan import WritePlan
from klog.connector.sink.rows import Aside, RefusedError, Rows, Rules, as_given, joined, read_rows
from klog.connector.sink.segments import Segments, Task
from klog.connector.sink.settings import Settings
from klog.connector.sink.spool import Spool
from klog.connector.store.contract import WritableStore
from klog.errors import KlogError
from klog.logformat.arrow import bounds_of
from klog.logformat.batch import HEADER_BYTES
from klog.logformat.encode import GROUP_BYTES, encode
from klog.logformat.form import Form
from klog.logformat.index import Longs
from klog.logformat.records import Records
from klog.logformat.sequence import advance

_COUNT = slice(57, 61)
"""Where a batch says how many records it has."""
_PART_BYTES, _ROW_BYTES = 2048, 48
"""What rows gathered at a time, and each of them, take beside keys, values and headers."""


class _Gathered:
    """Rows of one partition that are not encoded yet."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.least_bytes = 0

    def add(self, rows: Rows) -> None:
        if len(rows):
            self.parts.append(rows)
            self.least_bytes += int(rows.least_bytes.sum())

    def take(self) -> Rows:
        rows = joined(self.parts)
        self.parts, self.least_bytes = [], 0
        return rows

    def copy(self) -> int:
        """Let go of the batches that rows came in; gives the bytes that rows take now."""
        if not self.parts:
            return 0
        rows = self.take()
        self.add(rows.take(np.arange(len(rows))))
        return self.least_bytes + _PART_BYTES + _ROW_BYTES * len(rows)


class TopicStage:
    """The rows of one topic that one task has; `held_bytes` of them wait to be encoded."""

    def __init__(
        self,
        plan: WritePlan,
        task: Task,
        store: WritableStore,
        spool: Spool,
        aside: Aside | None = None,
    ) -> None:
        """Begin with no rows."""
        self.held_bytes = 0
        self._plan, self._task, self._store, self._spool = plan, task, store, spool
        self._rules, self._aside = _rules(plan, task), aside
        sticky = (plan.birth + task.index) % plan.partitions
        self._placement = Placement(plan.partitions, plan.settings.partitioner, sticky)
        self._gathered: dict[int, _Gathered] = {}
        self._segments: dict[int, Segments] = {}

    def add(self, batch: pa.RecordBatch, numbers: Longs) -> None:
        """Take rows, numbered so in what the task was given, and encode those that fill batches."""
        for rows in read_rows(batch, numbers, self._rules, self._aside):
            self._add(rows if self._aside is None else self._small_enough(rows, self._aside))

    def copy(self) -> None:
        """Let go of the batches that rows came in."""
        self.held_bytes = sum(gathered.copy() for gathered in self._gathered.values())

    def encode_all(self) -> None:
        """Encode all rows that wait, be they too few for a batch."""
        for partition in self._gathered:
            self._encode(partition, to_end=True)
        self.held_bytes = 0

    def finish(self) -> Staged:
        """Encode what is left, put what is not put yet, and give the entries in order."""
        found: list[Entry] = []
        for partition in sorted(self._gathered):
            self._encode(partition, to_end=True)
            self._segments[partition].close()
            found += self._segments[partition].done
        return Staged(self._plan.topic_id, self._plan.birth, found, self._plan.partitions)

    def _add(self, rows: Rows) -> None:
        enough = max(2 * self._plan.settings.batch_bytes, GROUP_BYTES)
        self.held_bytes += int(rows.least_bytes.sum()) + _ROW_BYTES * len(rows)
        for partition, own in grouped(rows, self._placement.of(rows)):
            gathered = self._gathered.setdefault(partition, _Gathered())
            gathered.add(own)
            self.held_bytes += _PART_BYTES
            if gathered.least_bytes > enough:
                self._encode(partition, to_end=False)

    def _small_enough(self, rows: Rows, aside: Aside) -> Rows:
        """Set aside the rows that are too large: those that may be are encoded alone to see."""
        limit = self._plan.settings.max_batch_bytes
        wrong = np.zeros(len(rows), bool)
        form = self._plan.form(self._task.index, 0, self._task.now_ms)
        sizes: dict[int, int] = {}
        for row in np.flatnonzero(
            rows.least_bytes + HEADER_BYTES > limit - max(limit // 8, 64)
        ).tolist():
            (batch,) = encode(_records(rows.part(row, row + 1), 0), form)
            sizes[row] = len(batch)
            wrong[row] = len(batch) > limit
        if not wrong.any():
            return rows
        aside(
            as_given(rows),
            RefusedError(wrong, lambda row: self._too_large(sizes[row])),
            rows.numbers,
        )
        sound = np.flatnonzero(~wrong)
        partition = None if rows.partition is None else rows.partition.take(pa.array(sound))
        return replace(rows.take(sound), partition=partition)

    def _encode(self, partition: int, *, to_end: bool) -> None:
        """Encode a partition's rows, those alone that surely fill batches unless `to_end`."""
        gathered = self._gathered[partition]
        if not gathered.parts:
            return
        rows = gathered.take()
        segments = self._segments.get(partition)
        if segments is None:
            segments = Segments(self._plan, self._task, partition, self._store, self._spool)
            self._segments[partition] = segments
        behind = bounds_of(rows.least_bytes)
        least = behind[-1] - (self._plan.settings.batch_bytes - HEADER_BYTES)
        done = 0
        for batch, count in self._encoded(rows, segments):
            segments.add(batch, rows.timestamp_ms[done : done + count])
            done += count
            if not to_end and behind[done] >= least:
                break
        gathered.add(rows.part(done, len(rows)))

    def _encoded(self, rows: Rows, segments: Segments) -> Iterator[tuple[bytes, int]]:
        sequence = advance(0, segments.next_offset - segments.first_offset)
        form = replace(segments.form, base_sequence=sequence)
        records = _records(rows, segments.next_offset)
        done = 0
        for batch, count in _fitting(records, form, self._plan.settings.max_batch_bytes):
            if count == 1 and len(batch) > self._plan.settings.max_batch_bytes:
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


def _fitting(records: Records, form: Form, limit: int) -> Iterator[tuple[bytes, int]]:
    """Encode records in batches of at most `limit` bytes, or of one record; gives their counts.

    A batch that compression has made larger than that is made anew as smaller ones.
    """
    done = 0
    for batch in encode(records, form):
        count = int.from_bytes(batch[_COUNT], "big")
        if len(batch) <= limit or count == 1:
            yield batch, count
        else:
            smaller = replace(
                form,
                batch_bytes=form.batch_bytes // 2,
                base_sequence=advance(form.base_sequence, done),
            )
            yield from _fitting(records.part(done, done + count), smaller, limit)
        done += count


def _is_bound_by_segment(settings: Settings) -> bool:
    return settings.max_batch_bytes == settings.limits.segment_bytes


def _rules(plan: WritePlan, task: Task) -> Rules:
    """Give what the topic asks of rows; a broker's clock is not bounded by the topic's limits."""
    settings, now_ms = plan.settings, task.now_ms
    before, after = settings.before_max_ms, settings.after_max_ms
    if settings.append_time:
        before = after = None
    return Rules(
        topic=plan.topic,
        task=task.name,
        partitions=plan.partitions,
        now_ms=now_ms,
        needs_key=settings.compacts,
        earliest_ms=None if before is None else now_ms - before,
        latest_ms=None if after is None else now_ms + after,
    )
