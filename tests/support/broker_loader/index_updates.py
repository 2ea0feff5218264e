"""What a broker does with the indexes of its log while it writes, truncates and serves it.

Appending entry by entry, the bounds of a full index, truncation, and what a fetch reads; Kafka's
`OffsetIndex`, `TimeIndex` and `TransactionIndex` (docs/format.md, 8.1 to 8.3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches.record_batch import NO_TIMESTAMP, Batches
from klog.logformat.indexes.abstract_index import (
    SEGMENT_INDEX_BYTES,
    max_entries,
    relative_offset,
)
from klog.logformat.indexes.index_building import (
    INDEX_INTERVAL_BYTES,
    Appends,
    batches_as_appends,
    build_indexes,
)
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.offset_index import OffsetIndex, OffsetPosition
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.indexes.time_index import TimeIndex, TimestampOffset
from klog.logformat.indexes.transaction_index import AbortedTransaction, AbortedTransactions

Pairs = Sequence[tuple[int, int]]


def entries_below(offsets: Longs, offset: int) -> int:
    """Return how many entries come before the first at or above an offset, in any order."""
    reached = np.flatnonzero(offsets >= offset)
    return int(reached[0]) if len(reached) else len(offsets)


def index_batches(
    batches: Batches, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES
) -> tuple[OffsetIndex, TimeIndex]:
    """Return the indexes that a broker's recovery builds for a segment of these batches."""
    return build_indexes(batches_as_appends(batches), base_offset, interval_bytes)


def append_offsets(
    index: OffsetIndex, entries: Pairs, segment_index_bytes: int = SEGMENT_INDEX_BYTES
) -> OffsetIndex:
    """Append (offset, position) entries.

    Raises `ValueError` if the index is full, or if an offset does not rise or does not fit the
    segment.
    """
    if len(index) + len(entries) > max_entries(segment_index_bytes, OFFSET_ENTRY.itemsize):
        raise ValueError(f"offset index is full with {len(index)} entries; roll first")
    last = index.last_offset if len(index) else index.base_offset - 1
    for offset, _ in entries:
        relative_offset(offset, index.base_offset)
        if offset <= last:
            raise ValueError(f"offset {offset} after an index entry for offset {last}")
        last = offset
    offsets, positions = np.array(entries, np.int64).reshape(-1, 2).T
    return OffsetIndex(
        np.append(index.offsets, offsets),
        np.append(index.positions, positions),
        index.base_offset,
    )


def append_times(
    index: TimeIndex,
    entries: Pairs,
    segment_index_bytes: int = SEGMENT_INDEX_BYTES,
    *,
    reserved: int = 1,
) -> TimeIndex:
    """Append the (timestamp, offset) entries with a larger timestamp than the one before.

    `reserved` slots stay free: one for the entry of the roll, which may take it (0). Raises
    `ValueError` if the index is full, if a timestamp or an offset falls, or if an offset does not
    fit the segment.
    """
    limit = max_entries(segment_index_bytes, TIME_ENTRY.itemsize) - reserved
    new: list[TimestampOffset] = []
    last = index.last_entry
    for timestamp_ms, offset in entries:
        count = len(index) + len(new)
        if count >= limit:
            raise ValueError(f"time index is full with {count} entries; roll first")
        if count and offset < last.offset:
            raise ValueError(f"offset {offset} after an index entry for offset {last.offset}")
        if count and timestamp_ms < last.timestamp_ms:
            raise ValueError(f"timestamp {timestamp_ms} after an index entry for {last}")
        if timestamp_ms > last.timestamp_ms:
            relative_offset(offset, index.base_offset)
            last = TimestampOffset(timestamp_ms, offset)
            new.append(last)
    timestamps, offsets = np.array(new, np.int64).reshape(-1, 2).T
    return TimeIndex(
        np.append(index.timestamps, timestamps),
        np.append(index.offsets, offsets),
        index.base_offset,
    )


def is_full_of_offsets(index: OffsetIndex, segment_index_bytes: int = SEGMENT_INDEX_BYTES) -> bool:
    """Return whether no entry fits any more: the segment rolls before its next append."""
    return len(index) >= max_entries(segment_index_bytes, OFFSET_ENTRY.itemsize)


def is_full_of_times(index: TimeIndex, segment_index_bytes: int = SEGMENT_INDEX_BYTES) -> bool:
    """Return whether only the slot for the entry of the roll is free."""
    return len(index) >= max_entries(segment_index_bytes, TIME_ENTRY.itemsize) - 1


def truncate_offsets(index: OffsetIndex, offset: int) -> OffsetIndex:
    """Keep the entries below an offset."""
    count = entries_below(index.offsets, offset)
    return OffsetIndex(index.offsets[:count], index.positions[:count], index.base_offset)


def truncate_times(index: TimeIndex, offset: int) -> TimeIndex:
    """Keep the entries below an offset."""
    count = entries_below(index.offsets, offset)
    return TimeIndex(index.timestamps[:count], index.offsets[:count], index.base_offset)


def truncate_aborted(aborted: AbortedTransactions, offset: int) -> AbortedTransactions:
    """Keep the entries before the first marker at or above an offset."""
    return _where(aborted, slice(entries_below(aborted.last_offsets, offset)))


def fetch_upper_bound(index: OffsetIndex, position: int, size_bytes: int) -> OffsetPosition | None:
    """Return the first entry at or after the end of a fetch; Kafka's `fetchUpperBoundOffset`.

    No batch of the fetch has an offset above the entry's.
    """
    number = int(np.searchsorted(index.positions, position + size_bytes, "left"))
    return index.entry(number) if number < len(index) else None


def lookup_time(index: TimeIndex, timestamp_ms: int) -> TimestampOffset:
    """Return the entry with the greatest timestamp at or below this, else (-1, base offset)."""
    number = int(np.searchsorted(index.timestamps, timestamp_ms, "right")) - 1
    none = TimestampOffset(NO_TIMESTAMP, index.base_offset)
    return index.entry(number) if number >= 0 else none


def collect_aborted(
    aborted: AbortedTransactions, fetch_offset: int, upper_bound: int
) -> tuple[AbortedTransactions, bool]:
    """Return the transactions that a fetch of [fetch offset, upper bound) needs.

    The second is True if no later segment can have another one: an entry's last stable offset
    reaches the upper bound.
    """
    stops = np.flatnonzero(aborted.last_stable_offsets >= upper_bound)
    read = _where(aborted, slice(int(stops[0]) + 1)) if len(stops) else aborted
    overlaps = (read.last_offsets >= fetch_offset) & (read.first_offsets < upper_bound)
    return _where(read, overlaps), bool(len(stops))


def aborted_entries(aborted: AbortedTransactions) -> list[AbortedTransaction]:
    """Return the entries one by one."""
    columns = (
        aborted.producer_ids,
        aborted.first_offsets,
        aborted.last_offsets,
        aborted.last_stable_offsets,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [AbortedTransaction(*row) for row in rows]


def _where(aborted: AbortedTransactions, rows: Mask | slice) -> AbortedTransactions:
    return AbortedTransactions(
        aborted.producer_ids[rows],
        aborted.first_offsets[rows],
        aborted.last_offsets[rows],
        aborted.last_stable_offsets[rows],
    )


def group_appends(appends: Appends, starts: Longs) -> Appends:
    """Make one append of several: row i has rows `starts[i]` to before `starts[i + 1]`.

    `starts` strictly rise from 0.
    """
    max_timestamps = np.maximum.reduceat(appends.max_timestamps, starts)
    counts = np.diff(np.append(starts, len(appends)))
    rows = np.arange(len(appends))
    has_max = appends.max_timestamps == np.repeat(max_timestamps, counts)
    first_rows = np.minimum.reduceat(np.where(has_max, rows, len(appends)), starts)
    return Appends(
        np.add.reduceat(appends.size_bytes, starts),
        appends.first_offsets[starts],
        appends.last_offsets[starts + counts - 1],
        max_timestamps,
        appends.max_timestamp_offsets[first_rows],
    )
