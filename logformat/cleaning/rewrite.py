"""What a cleaning leaves of batches: some as they are, some made anew with fewer records, some not.

The rule is Kafka's (docs/format.md, 20; `Cleaner.cleanInto`, `MemoryRecords.filterTo`): a batch
that keeps all its records keeps its bytes. One that loses some is made anew with what its header
says: base and last offset, leader epoch, producer and sequence, flags, codec; its records keep
their offsets, timestamps and headers. One that loses all goes, unless its offsets or its producer
are still needed: then 61 bytes stay. The first cleaning that keeps a tombstone, or meets a marker
of whose transaction nothing is left, puts into the batch when it may go, its delete horizon; a
cleaning behind that time drops it. Offsets never change.

Messages of formats v0 and v1 have no horizon. Where a cleaning would have to make a wrapper anew,
or meets a tombstone, it makes a batch v2 of the same records. (Kafka 4 makes one of every message,
also of those that it could leave; before, it made another wrapper, and went by the file's time.) A
batch v2 has a timestamp type: where messages v0 had none, it is CreateTime, and the time stays -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.cleaning.marks import SegmentMarks
from klog.logformat.cleaning.thinned import NO_HORIZON, Thin, Thinned
from klog.logformat.columnar import PART_RECORDS, Columns, decode
from klog.logformat.counting import data_counts
from klog.logformat.encode import empty_batch, encode_one
from klog.logformat.form import Form
from klog.logformat.index import Longs, Mask
from klog.logformat.records import Records
from klog.logformat.restamp import Run
from klog.logformat.transactions import is_control

_Left = Columns | Thinned
"""What is left of a batch."""
_COLUMNS = ("timestamp_ms", "timestamp_type", "key", "value", "headers")
NO_OFFSETS: Longs = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Fates:
    """What of a partition's batches a cleaning has to know besides their records.

    `now_ms` is the cleaning's time, `horizon_ms` what it gives as delete horizon. `kept_empty` are
    the last offsets of batches that stay though no record of theirs does, `spent_markers` the
    offsets of markers of whose transactions nothing is left; both rise.
    """

    now_ms: int
    horizon_ms: int
    kept_empty: Longs = field(default_factory=NO_OFFSETS.copy)
    spent_markers: Longs = field(default_factory=NO_OFFSETS.copy)


class Rewrite:
    """One segment being cleaned, its chunks given in order."""

    def __init__(self, marks: SegmentMarks, fates: Fates, thin: Thin | None = None) -> None:
        """Take the bits of its records; `thin` makes what is left where it can."""
        self._kept, self._tombstones = marks.masks()
        self._fates, self._thin = fates, thin
        self._row = 0

    def clean(self, data: bytes, batches: v2.Batches) -> Iterator[Run]:
        """Give what is left of more batches, control ones too, in order.

        Raises `CorruptRecordError` with the position in `data`, and `ValueError` where the batches
        have not the records that were marked.
        """
        counts, kept, plan = self._next(data, batches)
        left = _left(data, batches, counts, kept, plan, self._thin)
        yield from _runs(data, batches, plan, left)

    def leaves(self, data: bytes, batches: v2.Batches) -> bool:
        """Tell whether more batches stay as they are; instead of `clean`, and raises as it does."""
        _, _, plan = self._next(data, batches)
        return bool(plan.verbatim.all())

    def _next(self, data: bytes, batches: v2.Batches) -> tuple[Longs, Mask, _Plan]:
        """Give of more batches the records of each, which are kept, and what becomes of each."""
        counts = data_counts(data, batches)
        begin, self._row = self._row, self._row + int(counts.sum())
        if self._row > len(self._kept):
            raise ValueError(f"{self._row} records where {len(self._kept)} were marked")
        kept, tombstones = self._kept[begin : self._row], self._tombstones[begin : self._row]
        kept = _without_past(batches, counts, kept, tombstones, self._fates.now_ms)
        return counts, kept, _plan(batches, counts, kept, tombstones, self._fates)

    def close(self) -> None:
        """Raise `ValueError` if the segment had fewer records than were marked."""
        if self._row != len(self._kept):
            raise ValueError(f"{self._row} records where {len(self._kept)} were marked")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of each batch: one that is neither verbatim nor anew nor emptied goes.

    One that is made anew has its delete horizon of `horizons_ms`, if it `has_horizon`.
    """

    verbatim: Mask
    anew: Mask
    emptied: Mask
    has_horizon: Mask
    horizons_ms: Longs


def _without_past(
    batches: v2.Batches, counts: Longs, kept: Mask, tombstones: Mask, now_ms: int
) -> Mask:
    """Keep no tombstone whose delete horizon has passed."""
    past = _is_past(batches, now_ms)
    return kept & ~(tombstones & np.repeat(past, counts)) if past.any() else kept


def _is_past(batches: v2.Batches, now_ms: int) -> Mask:
    has_horizon = (batches.attributes & v2.DELETE_HORIZON) != 0
    past: Mask = has_horizon & (batches.headers["base_timestamp"].astype(np.int64) <= now_ms)
    return past


def _plan(batches: v2.Batches, counts: Longs, kept: Mask, tombstones: Mask, fates: Fates) -> _Plan:
    control = is_control(batches)
    spent = control
    if control.any():
        spent = control & np.isin(batches.base_offsets, fates.spent_markers)
    has_horizon = (batches.attributes & v2.DELETE_HORIZON) != 0
    there = np.where(control, batches.headers["count"].astype(np.int64), counts)
    left = np.where(control, there, _sums(kept, counts))
    left[spent & _is_past(batches, fates.now_ms)] = 0
    needs_horizon = ~has_horizon & (left > 0) & (spent | (_sums(kept & tombstones, counts) > 0))
    is_needed = np.isin(batches.next_offsets - 1, fates.kept_empty)
    # One that was emptied before and is still needed stays as it is too.
    verbatim = (left == there) & ((left > 0) | is_needed) & ~needs_horizon
    anew, emptied = (left > 0) & ~verbatim, (left == 0) & is_needed & ~verbatim
    had_ms = batches.headers["base_timestamp"].astype(np.int64)
    horizons_ms = np.where(needs_horizon, fates.horizon_ms, had_ms)
    return _Plan(verbatim, anew, emptied, has_horizon | needs_horizon, horizons_ms)


def _sums(mask: Mask, counts: Longs) -> Longs:
    """Count by batch the records for which a mask holds."""
    rows = np.flatnonzero(mask)
    found: Longs = np.diff(np.searchsorted(rows, np.append(0, np.cumsum(counts))))
    return found


def _runs(data: bytes, batches: v2.Batches, plan: _Plan, left: Iterator[_Left]) -> Iterator[Run]:
    """Give what is left: runs of batches that stay as one piece, and others that follow as one."""
    numbers = np.flatnonzero(plan.verbatim | plan.anew | plan.emptied)
    verbatim = plan.verbatim[numbers]
    # A run ends where the bytes do not follow, or something else has to be done.
    breaks = np.flatnonzero(
        (verbatim[1:] != verbatim[:-1]) | (verbatim[1:] & (np.diff(numbers) != 1))
    )
    for run in np.split(numbers, breaks + 1) if len(numbers) else ():
        if plan.verbatim[run[0]]:
            some = batches.part(int(run[0]), int(run[-1]) + 1)
            yield _moved(data[int(some.starts[0]) : int(some.ends[-1])], some)
        else:
            made = b"".join([_made(batches, one, plan, left) for one in run.tolist()])
            yield Run(made, v2.scan(made, 0, len(made)))


def _made(batches: v2.Batches, number: int, plan: _Plan, left: Iterator[_Left]) -> bytes:
    """Make one batch anew, or what stands for it if no record is left."""
    one = batches.part(number, number + 1)
    horizon_ms = int(plan.horizons_ms[number]) if plan.has_horizon[number] else None
    try:
        return _emptied(one) if plan.emptied[number] else _anew(one, next(left), horizon_ms)
    except ValueError as exc:
        reason = f"the batch cannot be made anew: {exc}"
        raise CorruptRecordError(reason, int(one.starts[0])) from exc


def _left(
    data: bytes,
    batches: v2.Batches,
    counts: Longs,
    kept: Mask,
    plan: _Plan,
    thin: Thin | None,
) -> Iterator[_Left]:
    """Give of each batch that is made anew the records that are left, all of a control batch.

    Those of many batches v2 are made side by side.
    """
    rows = np.append(0, np.cumsum(counts))
    lone = is_control(batches) | batches.is_legacy
    numbers = np.flatnonzero(plan.anew)
    # A group has about as many records as are decoded at a time, or is one lone batch.
    due = np.cumsum(counts[numbers]) // PART_RECORDS
    breaks = (np.diff(due) > 0) | lone[numbers][1:] | lone[numbers][:-1]
    for group in np.split(numbers, np.flatnonzero(breaks) + 1) if len(numbers) else ():
        own = np.zeros(len(batches), np.bool_)
        own[group] = True
        some = batches.where(own)
        if lone[group[0]]:
            columns = decode(data, some, _COLUMNS)
            wanted = kept[rows[group[0]] : rows[group[0] + 1]]
            yield columns if is_control(some)[0] else _filtered(columns, wanted)
            continue
        wanted = kept[np.repeat(own, counts)]
        if thin is not None:
            horizons = np.where(plan.has_horizon, plan.horizons_ms, NO_HORIZON)[group]
            if (thinned := thin(data, some, wanted, horizons)) is not None:
                yield from thinned
                continue
        columns = decode(data, some, _COLUMNS, wanted)
        ends = np.cumsum(_sums(wanted, counts[group])).tolist()
        for begin, end in pairwise([0, *ends]):
            yield columns.part(begin, end)


def _filtered(columns: Columns, wanted: Mask) -> Columns:
    mask = pa.array(wanted)

    def cut(column: Any) -> Any:
        return column.filter(mask) if isinstance(column, pa.Array) else column[wanted]

    named = {name: cut(getattr(columns, name)) for name in ("offset", *_COLUMNS)}
    return Columns(**named)


def _moved(data: bytes, batches: v2.Batches) -> Run:
    begin = batches.starts[0]
    return Run(data, v2.Batches(batches.starts - begin, batches.ends - begin, batches.headers))


def _emptied(batch: v2.Batches) -> bytes:
    header, last = batch.headers[0], int(batch.next_offsets[0]) - 1
    # Brokers take times below -1 from whoever sends them; a batch that has none says -1.
    latest = max(int(header["max_timestamp"]), v2.NO_TIMESTAMP)
    if int(header["magic"]) < v2.MAGIC:
        return empty_batch(Form(), last, 0, latest)
    form, delta = _form(header, None), int(header["last_offset_delta"])
    return empty_batch(form, int(header["base_offset"]), delta, latest)


def _anew(batch: v2.Batches, left: _Left, horizon_ms: int | None) -> bytes:
    """Make one batch anew of the records that are left of it."""
    header, last = batch.headers[0], int(batch.next_offsets[0]) - 1
    if isinstance(left, Thinned):
        base = int(header["base_offset"])
        return left.sealed(_form(header, horizon_ms), base, last - base)
    if int(header["magic"]) < v2.MAGIC:
        form = replace(_form_of_legacy(header, left), delete_horizon_ms=horizon_ms)
        base = int(left.offset[0])
    else:
        form, base = _form(header, horizon_ms), int(header["base_offset"])
    return encode_one(_records(left), form, base, last - base)


def _records(left: Columns) -> Records:
    assert left.headers is not None
    has_headers = left.headers.null_count < len(left.headers)
    return Records(
        pa.array(left.timestamp_ms),
        left.key,
        left.value,
        left.headers if has_headers else None,
        left.offset,
        is_from_log=True,
    )


def _form(header: v2.Headers, horizon_ms: int | None) -> Form:
    """Give what a batch v2 that is made anew takes from its header."""
    attributes = int(header["attributes"])
    append_time = int(header["max_timestamp"]) if attributes & v2.LOG_APPEND_TIME else None
    return Form(
        codec=attributes & v2.CODEC_MASK,
        leader_epoch=int(header["leader_epoch"]),
        producer_id=int(header["producer_id"]),
        producer_epoch=int(header["producer_epoch"]),
        base_sequence=int(header["base_sequence"]),
        transactional=bool(attributes & v2.TRANSACTIONAL),
        control=bool(attributes & v2.CONTROL),
        append_time_ms=append_time,
        delete_horizon_ms=horizon_ms,
    )


def _form_of_legacy(header: v2.Headers, columns: Columns) -> Form:
    assert columns.timestamp_ms is not None
    assert columns.timestamp_type is not None
    is_append_time = bool(len(columns.offset)) and int(columns.timestamp_type[0]) == 1
    append_time = int(columns.timestamp_ms[0]) if is_append_time else None
    return Form(codec=int(header["attributes"]) & v2.CODEC_MASK, append_time_ms=append_time)
