"""Record batches v2 from Arrow columns: where a batch ends, what its header says.

The rule: a batch takes records until the next one would make it, uncompressed and with its header,
larger than `batch_bytes`; a record that is larger by itself is a batch of its own (Kafka's
`MemoryRecordsBuilder.hasRoomFor`). Batches come one at a time, and what is held beyond input and
output is the records of one batch, or of as many small ones as fill `JOINED_BYTES`: those are
written in one step, for calling numpy and Arrow costs more than a small batch's records. To it come
a copy of a batch while gzip or zstd runs, copies of headers and of rows that lie in several chunks,
and the numbers about a group's records: a hundred and fifty bytes each, whatever the record's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from types import ModuleType

from klog.logformat import batch as v2
from klog.logformat.arrow import bounds_of, refuse
from klog.logformat.batch import NO_TIMESTAMP
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.columnar import MAX_BATCH_RECORDS
from klog.logformat.compiled.compiling import WORTH_RECORDS, Rented, writing_loops
from klog.logformat.filling import filled, suits
from klog.logformat.form import MAX_LONG, Form, check_range
from klog.logformat.records import (
    MAX_FIRST_OFFSET,
    Laid,
    Measured,
    Records,
    lay,
    measure,
    write,
)
from klog.logformat.sealing import Span, sealed
from klog.logformat.sequence import advance
from klog.logformat.varint import Longs
from klog.logformat.walk import MIN_RECORD_BYTES

GROUP_BYTES = 1 << 20
"""So many bytes of records are measured at once, or those of one larger batch."""
_MOST_BATCHES = 1024
_FIRST_ROWS = 4096
WRITING = Rented(writing_loops, WORTH_RECORDS)
"""The loops of whoever encodes in this process."""


def encode(records: Records, form: Form, loops: Rented[ModuleType] = WRITING) -> Iterator[bytes]:
    """Encode records as batches, one at a time; no records are no batch.

    With loops that numba compiled it takes about half the time beside the codec or less, and holds
    one batch, and copies of what lies in several chunks or in other types than the loops take: of
    a MiB or 65,536 rows' numbers. The bytes are the same. Who encodes has the loops once
    they are worth loading, and uses them for what suits them.

    Raises `ValueError` that names the row for a record that cannot be written, or with which a
    batch begins that outgrew `MAX_BATCH_BYTES` in compression; batches before it may have been
    given by then.
    """
    compiled = loops.given(len(records)) if suits(records) else None
    row = 0 if compiled is None else (yield from filled(records, form, compiled))
    rows = _FIRST_ROWS
    while row < len(records):
        window = _window(records, row, rows, form)
        cuts = _cuts(window, form, row, row + len(window) == len(records))
        used = cuts[-1].end
        written = write(records, row, window.part(0, used), [cut.laid for cut in cuts])
        left = iter(cuts)
        for payload in written:  # Not by zip, which would hold it while the next is joined.
            cut = next(left)
            part = window.part(cut.begin, cut.end)
            base, last = int(part.offsets[0]), int(part.offsets[-1])
            since_first = base - int(records.offsets(0, 1)[0])
            span = _span(part, form, base, last - base, since_first)
            made = sealed(payload, form, form.attributes, span, row + cut.begin)
            del payload, part
            yield made
            del made
        row, rows = row + used, _rows_of_group(form, used, int(window.least[:used].sum()))


def encode_one(
    records: Records,
    form: Form,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Encode all records as one batch, whatever `batch_bytes` says.

    A rewritten batch keeps its base offset and last offset delta though the records there are
    gone; by default they are those of the records. Raises `ValueError` for a record that cannot be
    written or does not lie within these offsets, and for no records: see `empty_batch`.
    """
    if not len(records):
        raise ValueError("a batch without records: it is made by empty_batch")
    rows = measure(records, 0, len(records))
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    base = first if base_offset is None else base_offset
    delta = last - base if last_offset_delta is None else last_offset_delta
    if not 0 <= base <= first:
        raise ValueError(f"base offset {base} for records from offset {first}")
    if not last - base <= delta <= v2.MAX_OFFSET_DELTA:
        raise ValueError(f"offset {last} is not within {delta} of base offset {base}")
    laid = lay(rows, 0, len(rows), _base_timestamp(rows, 0, form), base)
    _check_sizes(laid.sizes, 0)
    size, limit = int(laid.sizes.sum()), MAX_BATCH_BYTES - v2.HEADER_BYTES
    if len(rows) > MAX_BATCH_RECORDS or size > limit:
        raise ValueError(
            f"{len(rows)} records of {size} bytes are too many for one batch; "
            f"the limits are {MAX_BATCH_RECORDS} and {limit}"
        )
    span = _span(rows, form, base, delta, 0)
    (pieces,) = write(records, 0, rows, [laid])
    return sealed(pieces, form, form.attributes, span)


def empty_batch(form: Form, base_offset: int, last_offset_delta: int, max_timestamp: int) -> bytes:
    """Make the 61 bytes that compaction leaves of a batch whose producer still needs it.

    It keeps the offsets, flags, producer and maximum timestamp and has no base timestamp, codec or
    delete horizon (docs/format.md, 2, "An empty batch").
    """
    check_range("base offset", base_offset, 0, MAX_FIRST_OFFSET)
    check_range("last offset delta", last_offset_delta, 0, v2.MAX_OFFSET_DELTA)
    check_range("maximum timestamp", max_timestamp, NO_TIMESTAMP, MAX_LONG)
    span = Span(base_offset, last_offset_delta, NO_TIMESTAMP, max_timestamp, form.base_sequence, 0)
    return sealed([], form, form.flags, span)


def size_in_bytes(records: Records, form: Form, base_offset: int | None = None) -> int:
    """Give the bytes of all records as one batch, uncompressed and with its header."""
    rows = measure(records, 0, len(records))
    if not len(rows):
        return 0
    base = int(rows.offsets[0]) if base_offset is None else base_offset
    laid = lay(rows, 0, len(rows), _base_timestamp(rows, 0, form), base)
    return v2.HEADER_BYTES + int(laid.sizes.sum())


@dataclass(frozen=True, slots=True)
class _Cut:
    """A batch: rows of a window from `begin` to before `end`."""

    begin: int
    end: int
    laid: Laid


def _batches_of_group(form: Form) -> int:
    return min(max(GROUP_BYTES // max(form.batch_bytes, 1), 1), _MOST_BATCHES)


def _bytes_of_group(form: Form) -> int:
    """Give what the records of a group take at most, unless each is too large for its batch."""
    return _batches_of_group(form) * max(form.batch_bytes, v2.HEADER_BYTES + MIN_RECORD_BYTES)


def _window(records: Records, row: int, rows: int, form: Form) -> Measured:
    """Measure so many rows from `row` that the batches of a group surely end among them.

    `rows` is a guess. Two rows at least, for one larger than a batch ends where the next begins.
    """
    while True:
        end = min(row + min(max(rows, 2), MAX_BATCH_RECORDS + 1), len(records))
        window = measure(records, row, end)
        found = int(window.least.sum())
        is_enough = found > _bytes_of_group(form)
        if is_enough or end == len(records) or end - row > MAX_BATCH_RECORDS:
            return window
        rows = _rows_of_group(form, end - row, found)


def _rows_of_group(form: Form, rows: int, least_bytes: int) -> int:
    """Guess how many rows a group takes, if others took so many bytes at least.

    To the even share come as many as the number may well differ by where sizes do.
    """
    share = _bytes_of_group(form) * rows // least_bytes
    return share + 2 * isqrt(share) + 2


def _cuts(window: Measured, form: Form, row: int, is_last: bool) -> list[_Cut]:
    """Cut the batches of a group: one at least. The window begins at `row`.

    The rows that can be in a batch at all are those whose least bytes fit; only they are laid. A
    batch that ends with the window is left to the next one, unless the window `is_last`.
    """
    room = form.batch_bytes - v2.HEADER_BYTES
    least = bounds_of(window.least)
    cuts: list[_Cut] = []
    begin = 0
    while begin < len(window) and len(cuts) < _batches_of_group(form):
        base = int(window.offsets[begin])
        end = max(int(least.searchsorted(least[begin] + room, "right")) - 1, begin + 1)
        end = min(end, begin + MAX_BATCH_RECORDS)
        if int(window.offsets[end - 1]) - base > v2.MAX_OFFSET_DELTA:
            end = int(window.offsets.searchsorted(base + v2.MAX_OFFSET_DELTA, "right"))
        laid = lay(window, begin, end, _base_timestamp(window, begin, form), base)
        fitting = int(laid.sizes.cumsum().searchsorted(room, "right"))
        count = max(fitting, 1)
        _check_sizes(laid.sizes[:count], row + begin)
        if begin + count == len(window) and cuts and not is_last:
            break
        cuts.append(_Cut(begin, begin + count, laid.first(count)))
        begin += count
    return cuts


def _base_timestamp(rows: Measured, first: int, form: Form) -> int:
    return int(rows.timestamps[first]) if form.delete_horizon_ms is None else form.delete_horizon_ms


def _span(rows: Measured, form: Form, base: int, delta: int, since_first: int) -> Span:
    """Say what the header of a batch of these rows says; sequences go as offsets do."""
    sequence, latest = form.base_sequence, form.append_time_ms
    return Span(
        base_offset=base,
        last_offset_delta=delta,
        base_timestamp=_base_timestamp(rows, 0, form),
        max_timestamp=int(rows.timestamps.max()) if latest is None else latest,
        base_sequence=advance(sequence, since_first),
        count=len(rows),
    )


def _check_sizes(sizes: Longs, first_row: int) -> None:
    """Refuse a record that is by itself a larger batch than a reader takes, before it is copied."""
    wrong = sizes > MAX_BATCH_BYTES - v2.HEADER_BYTES
    refuse(wrong, first_row, f"the record makes a batch of more than {MAX_BATCH_BYTES} bytes")
