"""Where index entries go: which appends a broker gives an entry (docs/format.md, 8.1 and 8.2).

The rule: an append gets an entry if more than `index.interval.bytes` lie between the start of the
last append with an entry (at first, of the segment) and its own start. So the first append of a
segment has none, and an append of many batches has at most one. The offset index entry has the last
offset of the append and its start. The time index entry has the largest timestamp up to and
including the append, and the offset of the first append with it; it is left out if the timestamp
is not above that of the entry before. A last time entry is added when the segment is rolled or
closed.

A broker that recovers a segment takes its batches for appends. Kafka's `LogSegment.append`,
`LogSegment.recover`, `onBecomeInactiveSegment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches.record_batch import WRAPPER_COUNT, Batches
from klog.logformat.indexes.offset_index import OffsetIndex, empty_offset_index
from klog.logformat.indexes.time_index import TimeIndex, TimestampOffset, empty_time_index

INDEX_INTERVAL_BYTES = 4096
"""Kafka's default of `index.interval.bytes`."""
UNKNOWN_OFFSET = -1
"""First offset of a compressed append of an old format: only its last one is known."""


@dataclass(frozen=True, slots=True)
class Appends:
    """Consecutive appends, one a row: what decides index entries and rolls.

    Attributes:
        size_bytes: At least 1.
        first_offsets: `UNKNOWN_OFFSET` for a compressed append of an old format.
        last_offsets: Inclusive.
        max_timestamps: In ms, -1 without a timestamp.
        max_timestamp_offsets: What a time index entry has for the append: the last offset of its
            first batch with the largest timestamp.
    """

    size_bytes: Longs
    first_offsets: Longs
    last_offsets: Longs
    max_timestamps: Longs
    max_timestamp_offsets: Longs

    def __len__(self) -> int:
        """Return the number of appends."""
        return len(self.size_bytes)

    @property
    def positions(self) -> Longs:
        """Return the start of each append, relative to the first one's."""
        return np.cumsum(self.size_bytes) - self.size_bytes

    def part(self, start: int, end: int) -> Appends:
        """Return some of the appends.

        Args:
            start: Number of the first.
            end: Number after the last.
        """
        return Appends(*(getattr(self, column.name)[start:end] for column in fields(self)))


def concat_appends(parts: Sequence[Appends]) -> Appends:
    """Concatenate appends.

    Args:
        parts: At least one.
    """
    columns = ([getattr(part, column.name) for part in parts] for column in fields(Appends))
    return Appends(*map(np.concatenate, columns))


def batches_as_appends(batches: Batches) -> Appends:
    """Take each batch for an append, as a broker's recovery does.

    Of a message of format v0 or v1 only the frame is read: v0 has no timestamp; a wrapper has its
    last offset and, in v1, its largest timestamp.

    Args:
        batches: The batches.
    """
    last_offsets = batches.next_offsets - 1
    is_wrapper = batches.headers["count"] == WRAPPER_COUNT
    timestamps: Longs = batches.headers["max_timestamp"].astype(np.int64)
    return Appends(
        batches.ends - batches.starts,
        np.where(is_wrapper, UNKNOWN_OFFSET, batches.base_offsets),
        last_offsets,
        timestamps,
        last_offsets,
    )


@dataclass(frozen=True, slots=True)
class OpenIndexes:
    """The indexes of a segment that is being written or recovered.

    Attributes:
        offset_index: Its entries so far.
        time_index: Its entries so far.
        size_bytes: The position of the next append.
        unindexed_bytes: What was appended from the last append with an entry on (or since the
            segment was opened).
        largest: The largest timestamp so far.
    """

    offset_index: OffsetIndex
    time_index: TimeIndex
    size_bytes: int
    unindexed_bytes: int
    largest: TimestampOffset

    def with_appends(
        self, appends: Appends, interval_bytes: int = INDEX_INTERVAL_BYTES
    ) -> OpenIndexes:
        """Return the indexes after more appends. The caller rolls before an index is full.

        Args:
            appends: The next appends.
            interval_bytes: The topic's `index.interval.bytes`.
        """
        if not len(appends):
            return self
        positions = appends.positions
        size_bytes = int(positions[-1] + appends.size_bytes[-1])
        rows = rows_with_entries(positions + self.unindexed_bytes, interval_bytes)
        unindexed_bytes = size_bytes - int(positions[rows[-1]]) if len(rows) else 0
        offsets, times = self.offset_index, self.time_index
        all_timestamps, all_timestamp_offsets = self._largest_after(appends)
        timestamps = all_timestamps[rows]
        is_new = timestamps > np.append(times.last_entry.timestamp_ms, timestamps)[:-1]
        return OpenIndexes(
            OffsetIndex(
                np.append(offsets.offsets, appends.last_offsets[rows]),
                np.append(offsets.positions, positions[rows] + self.size_bytes),
                offsets.base_offset,
            ),
            TimeIndex(
                np.append(times.timestamps, timestamps[is_new]),
                np.append(times.offsets, all_timestamp_offsets[rows[is_new]]),
                times.base_offset,
            ),
            self.size_bytes + size_bytes,
            unindexed_bytes if len(rows) else self.unindexed_bytes + size_bytes,
            TimestampOffset(int(all_timestamps[-1]), int(all_timestamp_offsets[-1])),
        )

    def closed(self) -> tuple[OffsetIndex, TimeIndex]:
        """Return the indexes as a roll or a clean stop leaves them: with the last time entry."""
        times = self.time_index
        if self.largest.timestamp_ms > times.last_entry.timestamp_ms:
            times = TimeIndex(
                np.append(times.timestamps, self.largest.timestamp_ms),
                np.append(times.offsets, self.largest.offset),
                times.base_offset,
            )
        return self.offset_index, times

    def _largest_after(self, appends: Appends) -> tuple[Longs, Longs]:
        """Return the largest timestamp after each append, and the offset of the first with it."""
        largest = np.append(self.largest.timestamp_ms, appends.max_timestamps)
        offsets = np.append(self.largest.offset, appends.max_timestamp_offsets)
        np.maximum.accumulate(largest, out=largest)
        rises = np.append(False, largest[1:] > largest[:-1])
        first_rows = np.maximum.accumulate(np.where(rises, np.arange(len(rises)), 0))
        return largest[1:], offsets[first_rows[1:]]


def empty_indexes(base_offset: int) -> OpenIndexes:
    """Return the indexes of a new segment.

    Args:
        base_offset: Its base offset.
    """
    offset_index, time_index = empty_offset_index(base_offset), empty_time_index(base_offset)
    return OpenIndexes(offset_index, time_index, 0, 0, time_index.last_entry)


def build_indexes(
    appends: Appends, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES
) -> tuple[OffsetIndex, TimeIndex]:
    """Return the indexes of a closed segment.

    Args:
        appends: All appends of the segment.
        base_offset: Its base offset.
        interval_bytes: The topic's `index.interval.bytes`.
    """
    return empty_indexes(base_offset).with_appends(appends, interval_bytes).closed()


def rows_with_entries(positions: Longs, interval_bytes: int) -> Longs:
    """Return the numbers of the appends that get an offset index entry.

    Args:
        positions: Where appends start, counted from the last append with an entry; strictly rising.
        interval_bytes: The topic's `index.interval.bytes`.
    """
    count = len(positions)
    # For each append the next one that gets an entry if it has one; then walk from entry to entry.
    next_rows = np.searchsorted(positions, positions + interval_bytes, "right")
    row = int(np.searchsorted(positions, interval_bytes, "right"))
    if (next_rows[row:] == np.arange(row + 1, count + 1)).all():
        return np.arange(row, count)
    next_row_list: list[int] = next_rows.tolist()
    rows: list[int] = []
    while row < count:
        rows.append(row)
        row = next_row_list[row]
    return np.array(rows, np.int64)
