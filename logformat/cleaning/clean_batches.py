"""Clean the batches of a segment: what a cleaning retains of them, as runs of bytes.

The rule is Kafka's (docs/format.md, 20; `Cleaner.cleanInto`, `MemoryRecords.filterTo`): offsets
never change. `batch_retention` decides what becomes of each batch, `rewrite_batch` writes those
that change. Batches that are unchanged and follow each other are one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import PART_RECORDS, decode_records
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.record_counts import data_record_counts
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.cleaning.batch_retention import (
    BatchRetention,
    CleaningContext,
    count_by_batch,
    plan_batch_retention,
)
from klog.logformat.cleaning.filter_records import NO_HORIZON, RecordFilter
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from klog.logformat.cleaning.rewrite_batch import (
    COLUMNS,
    RecordsToRewrite,
    empty_of,
    rewrite_batch,
)
from klog.logformat.cleaning.tombstone_retention import drop_expired_tombstones


class SegmentCleaner:
    """Clean one segment, chunk by chunk in the order of the log."""

    def __init__(
        self,
        bitmap: RetainedBitmap,
        context: CleaningContext,
        record_filter: RecordFilter | None = None,
    ) -> None:
        """Start before the first chunk.

        Args:
            bitmap: Of the segment's records.
            context: Of the cleaning.
            record_filter: Filters records by kernels, if there are any.
        """
        self._retained, self._tombstones = bitmap.masks()
        self._context, self._filter = context, record_filter
        self._row = 0

    def clean(self, data: bytes, batches: v2.Batches) -> Iterator[BatchRun]:
        """Yield what is retained of the next batches.

        Args:
            data: The bytes that `batches` lie in.
            batches: The next batches, control batches too.

        Raises:
            CorruptRecordError: With the position in `data`.
            ValueError: If the batches have other records than the bitmap.
        """
        counts, retained, plan = self._plan(data, batches)
        records = _records_to_rewrite(data, batches, counts, retained, plan, self._filter)
        yield from _runs(data, batches, plan, records)

    def retains_all(self, data: bytes, batches: v2.Batches) -> bool:
        """Return whether the next batches are unchanged; called instead of `clean`.

        Args:
            data: The bytes that `batches` lie in.
            batches: The next batches, control batches too.

        Raises:
            CorruptRecordError: As `clean`.
            ValueError: As `clean`.
        """
        _, _, plan = self._plan(data, batches)
        return bool(plan.is_unchanged.all())

    def close(self) -> None:
        """Check that the segment had as many records as the bitmap.

        Raises:
            ValueError: If it had fewer.
        """
        if self._row != len(self._retained):
            raise ValueError(f"{self._row} records, but the bitmap has {len(self._retained)}")

    def _plan(self, data: bytes, batches: v2.Batches) -> tuple[Longs, Mask, BatchRetention]:
        """Return the record counts of the next batches, their retained records, and the plan."""
        counts = data_record_counts(data, batches)
        start, self._row = self._row, self._row + int(counts.sum())
        if self._row > len(self._retained):
            raise ValueError(f"{self._row} records, but the bitmap has {len(self._retained)}")
        rows = slice(start, self._row)
        tombstones = self._tombstones[rows]
        retained = drop_expired_tombstones(
            batches, counts, self._retained[rows], tombstones, self._context.now_ms
        )
        plan = plan_batch_retention(batches, counts, retained, tombstones, self._context)
        return counts, retained, plan


def _runs(
    data: bytes, batches: v2.Batches, plan: BatchRetention, records: Iterator[RecordsToRewrite]
) -> Iterator[BatchRun]:
    """Yield the batches that stay: neighbours that are unchanged, or that are not, are a run."""
    numbers = np.flatnonzero(plan.is_unchanged | plan.is_rewritten | plan.is_emptied)
    is_unchanged = plan.is_unchanged[numbers]
    # A run of unchanged batches ends where the next one does not follow it in `data`.
    breaks = np.flatnonzero(
        (is_unchanged[1:] != is_unchanged[:-1]) | (is_unchanged[1:] & (np.diff(numbers) != 1))
    )
    for run in np.split(numbers, breaks + 1) if len(numbers) else ():
        if plan.is_unchanged[run[0]]:
            part = batches.slice(int(run[0]), int(run[-1]) + 1)
            yield _unchanged_run(data[int(part.starts[0]) : int(part.ends[-1])], part)
        else:
            rewritten = [_rewritten(batches, number, plan, records) for number in run.tolist()]
            run_data = b"".join(rewritten)
            yield BatchRun(run_data, scan_batches(run_data, 0, len(run_data)))


def _unchanged_run(data: bytes, batches: v2.Batches) -> BatchRun:
    start = batches.starts[0]
    return BatchRun(data, v2.Batches(batches.starts - start, batches.ends - start, batches.headers))


def _rewritten(
    batches: v2.Batches, number: int, plan: BatchRetention, records: Iterator[RecordsToRewrite]
) -> bytes:
    """Return the bytes of one batch that is rewritten or emptied."""
    batch = batches.slice(number, number + 1)
    horizon_ms = int(plan.horizons_ms[number]) if plan.has_horizon[number] else None
    try:
        if plan.is_emptied[number]:
            return empty_of(batch)
        return rewrite_batch(batch, next(records), horizon_ms)
    except ValueError as exc:
        reason = f"the batch cannot be rewritten: {exc}"
        raise CorruptRecordError(reason, int(batch.starts[0])) from exc


def _records_to_rewrite(
    data: bytes,
    batches: v2.Batches,
    counts: Longs,
    retained: Mask,
    plan: BatchRetention,
    record_filter: RecordFilter | None,
) -> Iterator[RecordsToRewrite]:
    """Yield the retained records of each batch that is rewritten, all of a control batch.

    Batches v2 of data are decoded many at a time, up to `PART_RECORDS` records.
    """
    row_bounds = np.append(0, np.cumsum(counts))
    is_alone = batches.is_control | batches.is_legacy
    numbers = np.flatnonzero(plan.is_rewritten)
    groups = np.cumsum(counts[numbers]) // PART_RECORDS
    breaks = (np.diff(groups) > 0) | is_alone[numbers][1:] | is_alone[numbers][:-1]
    for group in np.split(numbers, np.flatnonzero(breaks) + 1) if len(numbers) else ():
        in_group = np.zeros(len(batches), np.bool_)
        in_group[group] = True
        part = batches.where(in_group)
        if is_alone[group[0]]:
            columns = decode_records(data, part, COLUMNS)
            group_rows = retained[row_bounds[group[0]] : row_bounds[group[0] + 1]]
            yield columns if part.is_control[0] else _filter_columns(columns, group_rows)
            continue
        group_rows = retained[np.repeat(in_group, counts)]
        if record_filter is not None:
            horizons = np.where(plan.has_horizon, plan.horizons_ms, NO_HORIZON)[group]
            part_records = record_filter(data, part, group_rows, horizons)
            if part_records is not None:
                yield from part_records
                continue
        columns = decode_records(data, part, COLUMNS, group_rows)
        ends = np.cumsum(count_by_batch(group_rows, counts[group])).tolist()
        for start, end in pairwise([0, *ends]):
            yield columns.slice(start, end)


def _filter_columns(columns: RecordColumns, rows: Mask) -> RecordColumns:
    arrow_rows = pa.array(rows)

    def filter_column(column: Any) -> Any:
        return column.filter(arrow_rows) if isinstance(column, pa.Array) else column[rows]

    return RecordColumns(
        **{name: filter_column(getattr(columns, name)) for name in ("offset", *COLUMNS)}
    )
