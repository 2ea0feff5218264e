"""One task's part of a write: rows in, segments on the store and their entries out.

The rule: rows of a partition are gathered until they fill batches, and encoded once. Within
`buffer.memory` the batches are those that one encoder over all of the partition's rows would make,
however the rows came; rows that stay too few for a batch when memory runs out are encoded as they
are. A task puts one log for each partition that it has rows for, more only where segments roll, and
only once rows and batches are whole. Nothing that it puts is visible before a commit names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from tempfile import TemporaryFile
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from klog.connector.log.entries import Entry
from klog.connector.log.operations import Staged
from klog.connector.sink.columns import check_columns
from klog.connector.sink.placement import Placement, grouped
from klog.connector.sink.plan import WritePlan
from klog.connector.sink.rows import Rows, Rules, joined, read_rows
from klog.connector.sink.segments import Segments, Task
from klog.connector.sink.settings import Settings
from klog.connector.sink.spool import OpenFile, Spool
from klog.connector.store.contract import WritableStore
from klog.errors import KlogError, OptionError
from klog.logformat.arrow import bounds_of
from klog.logformat.batch import HEADER_BYTES
from klog.logformat.encode import GROUP_BYTES, encode
from klog.logformat.form import Form
from klog.logformat.records import Records
from klog.logformat.sequence import advance

Given: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]

_TAKEN = "give a pyarrow Table, a RecordBatch, or RecordBatches one after another"
_COUNT = slice(57, 61)
"""Where a batch says how many records it has."""
_PART_BYTES, _ROW_BYTES = 2048, 48
"""What rows gathered at a time, and each of them, take beside keys, values and headers."""


def stage(
    plan: WritePlan,
    task: Task,
    given: Given,
    store: WritableStore,
    open_file: OpenFile = TemporaryFile,
) -> Staged:
    """Write the rows given to segments on the store, in their order.

    Raises `OptionError` for columns, `KlogError` that names the row for one that cannot be written;
    files that were put by then are garbage, as those of any attempt that no commit names.
    """
    staging = _Stage(plan, task, store, Spool(open_file))
    try:
        row = 0
        for batch in _batches(given):
            staging.add(batch, row)
            row += len(batch)
        segments = staging.finish()
    finally:
        staging.spool.close()
    return Staged(plan.topic_id, plan.birth, segments, plan.partitions)


def _batches(given: Given) -> Iterable[pa.RecordBatch]:
    if isinstance(given, pa.RecordBatch):
        return [given]
    # A table or a reader without rows has no batch that would be checked.
    schema = getattr(given, "schema", None)
    if isinstance(schema, pa.Schema):
        check_columns(schema)
    if isinstance(given, pa.Table):
        batches: list[pa.RecordBatch] = given.to_batches()
        return batches
    if not isinstance(given, Iterable):
        raise OptionError(f"rows are {type(given).__name__}; {_TAKEN}")
    return map(_batch, given)


def _batch(given: object) -> pa.RecordBatch:
    if not isinstance(given, pa.RecordBatch):
        raise OptionError(f"rows come as {type(given).__name__}; {_TAKEN}")
    return given


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


class _Stage:
    """The state of `stage`."""

    def __init__(self, plan: WritePlan, task: Task, store: WritableStore, spool: Spool) -> None:
        self.spool = spool
        self._plan, self._task, self._store = plan, task, store
        self._rules = _rules(plan, task.now_ms)
        sticky = (plan.birth + task.index) % plan.partitions
        self._placement = Placement(plan.partitions, plan.settings.partitioner, sticky)
        self._gathered: dict[int, _Gathered] = {}
        self._segments: dict[int, Segments] = {}
        self._held_bytes = 0

    def add(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Take rows, and encode those that fill batches."""
        enough = max(2 * self._plan.settings.batch_bytes, GROUP_BYTES)
        for rows in read_rows(batch, first_row, self._rules):
            self._held_bytes += int(rows.least_bytes.sum()) + _ROW_BYTES * len(rows)
            for partition, own in grouped(rows, self._placement.of(rows)):
                gathered = self._gathered.setdefault(partition, _Gathered())
                gathered.add(own)
                self._held_bytes += _PART_BYTES
                if gathered.least_bytes > enough:
                    self._encode(partition, to_end=False)
            self._make_room()

    def finish(self) -> list[Entry]:
        """Encode what is left, put what is not put yet, and give the entries in order."""
        found: list[Entry] = []
        for partition in sorted(self._gathered):
            self._encode(partition, to_end=True)
            self._segments[partition].close()
            found += self._segments[partition].done
        return found

    def _encode(self, partition: int, *, to_end: bool) -> None:
        """Encode a partition's rows, those alone that surely fill batches unless `to_end`."""
        gathered = self._gathered[partition]
        if not gathered.parts:
            return
        rows = gathered.take()
        segments = self._segments.get(partition)
        if segments is None:
            segments = Segments(self._plan, self._task, partition, self._store, self.spool)
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
        timestamps = pa.array(rows.timestamp_ms)
        records = Records(timestamps, rows.key, rows.value, rows.headers, segments.next_offset)
        done = 0
        for batch, count in _fitting(records, form, self._plan.settings.max_batch_bytes):
            if count == 1:
                self._check_size(len(batch), int(rows.numbers[done]))
            yield batch, count
            done += count

    def _check_size(self, size_bytes: int, row: int) -> None:
        settings = self._plan.settings
        if size_bytes > settings.max_batch_bytes:
            name = "segment.bytes" if _is_bound_by_segment(settings) else "max.message.bytes"
            raise KlogError(
                f"{self._plan.topic}: row {row}: the record makes a batch of {size_bytes} bytes, "
                f"{name} allows {settings.max_batch_bytes}; raise it, or make the record smaller"
            )

    def _make_room(self) -> None:
        """Keep rows and batches within `buffer.memory`, so far as one piece of rows allows."""
        budget = self._plan.settings.buffer_bytes
        if self._held_bytes + self.spool.held_bytes <= budget:
            return
        if self._held_bytes > budget // 2:
            self._held_bytes = sum(gathered.copy() for gathered in self._gathered.values())
            if self._held_bytes > budget // 2:
                for partition in self._gathered:
                    self._encode(partition, to_end=True)
                self._held_bytes = 0
        if self._held_bytes + self.spool.held_bytes > budget:
            self.spool.spill()


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


def _rules(plan: WritePlan, now_ms: int) -> Rules:
    """Give what the topic asks of rows; a broker's clock is not bounded by the topic's limits."""
    settings = plan.settings
    before, after = settings.before_max_ms, settings.after_max_ms
    if settings.append_time:
        before = after = None
    return Rules(
        topic=plan.topic,
        partitions=plan.partitions,
        now_ms=now_ms,
        needs_key=settings.compacts,
        earliest_ms=None if before is None else now_ms - before,
        latest_ms=None if after is None else now_ms + after,
    )
