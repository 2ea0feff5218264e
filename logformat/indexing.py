"""Which entries a broker gives the indexes of a segment (docs/format.md, 8.1 and 8.2).

The rule: an append gets an entry if strictly more than `index.interval.bytes` lie between the start
of the last one that got one (of the segment, at first) and its own start. So the first append of a
segment never gets one, and an append of many batches gets one at most. The offset index says the
append's last offset and its start; the time index the largest timestamp up to and with the append,
and the offset of the earliest that had it, if it is larger than the entry before says. A last time
entry is added when the segment is rolled or closed.

A broker that recovers a segment goes by its batches in the same way. Kafka's `LogSegment.append`,
`LogSegment.recover`, `onBecomeInactiveSegment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from klog.logformat.batch import WRAPPER_COUNT, Batches
from klog.logformat.index import Longs
from klog.logformat.offset_index import OffsetIndex, empty_offset_index
from klog.logformat.time_index import TimeIndex, TimestampOffset, empty_time_index

INDEX_INTERVAL_BYTES = 4096
"""Kafka's default of `index.interval.bytes`."""
UNKNOWN_OFFSET = -1
"""First offset of a compressed append of an old format: only its last one is known."""


@dataclass(frozen=True, slots=True)
class Appends:
    """Consecutive appends, a row each: what indexes and rolls go by. Each has at least one byte.

    `max_timestamps` are in ms, -1 where no record has one; `max_timestamp_offsets` are those
    that the time index is to say for them: the last offset of the earliest batch that has it.
    `first_offsets` may be `UNKNOWN_OFFSET`.
    """

    size_bytes: Longs
    first_offsets: Longs
    last_offsets: Longs
    max_timestamps: Longs
    max_timestamp_offsets: Longs

    def __len__(self) -> int:
        """Give the number of appends."""
        return len(self.size_bytes)

    @property
    def positions(self) -> Longs:
        """Give the start of each append, counted from the first one's."""
        return np.cumsum(self.size_bytes) - self.size_bytes

    def part(self, begin: int, end: int) -> Appends:
        """Keep the appends from `begin` to before `end`, by number."""
        return Appends(*(getattr(self, each.name)[begin:end] for each in fields(self)))

    def grouped(self, starts: Longs) -> Appends:
        """Make one append of several: row i holds rows `starts[i]` to before `starts[i + 1]`.

        `starts` strictly rise from 0.
        """
        most = np.maximum.reduceat(self.max_timestamps, starts)
        counts = np.diff(np.append(starts, len(self)))
        rows = np.arange(len(self))
        earliest = np.where(self.max_timestamps == np.repeat(most, counts), rows, len(self))
        return Appends(
            np.add.reduceat(self.size_bytes, starts),
            self.first_offsets[starts],
            self.last_offsets[starts + counts - 1],
            most,
            self.max_timestamp_offsets[np.minimum.reduceat(earliest, starts)],
        )


def joined(parts: Sequence[Appends]) -> Appends:
    """Put appends one behind the other; one part at least."""
    columns = ([getattr(part, each.name) for part in parts] for each in fields(Appends))
    return Appends(*map(np.concatenate, columns))


def appends_of(batches: Batches) -> Appends:
    """Take each batch for an append, as a broker's recovery does.

    An entry of v0 or v1 goes by what its frame says, unopened: v0 has no timestamp, a wrapper says
    its last offset and, in v1, the largest timestamp.
    """
    lasts = batches.next_offsets - 1
    firsts = np.where(
        batches.headers["count"] == WRAPPER_COUNT, UNKNOWN_OFFSET, batches.base_offsets
    )
    timestamps: Longs = batches.headers["max_timestamp"].astype(np.int64)
    sizes = batches.ends - batches.starts
    return Appends(sizes, firsts, lasts, timestamps, lasts)


@dataclass(frozen=True, slots=True)
class OpenIndexes:
    """The indexes of a segment that is being written or recovered.

    `size_bytes` is the position of the next append, `unindexed_bytes` what was appended since an
    append got an entry (or since the segment was opened), `largest` the largest timestamp so far.
    """

    offset_index: OffsetIndex
    time_index: TimeIndex
    size_bytes: int
    unindexed_bytes: int
    largest: TimestampOffset

    def with_appends(
        self, appends: Appends, interval_bytes: int = INDEX_INTERVAL_BYTES
    ) -> OpenIndexes:
        """Add the entries of the next appends; the roll sees to it that they have room."""
        if not len(appends):
            return self
        positions = appends.positions
        size_bytes = int(positions[-1] + appends.size_bytes[-1])
        chosen = entry_rows(positions + self.unindexed_bytes, interval_bytes)
        unindexed = size_bytes - int(positions[chosen[-1]]) if len(chosen) else 0
        offsets, times = self.offset_index, self.time_index
        timestamps, timestamp_offsets = self._largest_after(appends)
        entered = timestamps[chosen]
        new = entered > np.append(times.last_entry.timestamp_ms, entered)[:-1]
        return OpenIndexes(
            OffsetIndex(
                np.append(offsets.offsets, appends.last_offsets[chosen]),
                np.append(offsets.positions, positions[chosen] + self.size_bytes),
                offsets.base_offset,
            ),
            TimeIndex(
                np.append(times.timestamps, entered[new]),
                np.append(times.offsets, timestamp_offsets[chosen[new]]),
                times.base_offset,
            ),
            self.size_bytes + size_bytes,
            unindexed if len(chosen) else self.unindexed_bytes + size_bytes,
            TimestampOffset(int(timestamps[-1]), int(timestamp_offsets[-1])),
        )

    def closed(self) -> tuple[OffsetIndex, TimeIndex]:
        """Give the indexes as a roll or a clean stop leaves them: with the last time entry."""
        times = self.time_index
        if self.largest.timestamp_ms > times.last_entry.timestamp_ms:
            times = TimeIndex(
                np.append(times.timestamps, self.largest.timestamp_ms),
                np.append(times.offsets, self.largest.offset),
                times.base_offset,
            )
        return self.offset_index, times

    def _largest_after(self, appends: Appends) -> tuple[Longs, Longs]:
        """Give the largest timestamp after each append, and the offset of the earliest with it."""
        largest = np.append(self.largest.timestamp_ms, appends.max_timestamps)
        offsets = np.append(self.largest.offset, appends.max_timestamp_offsets)
        np.maximum.accumulate(largest, out=largest)
        rises = np.append(False, largest[1:] > largest[:-1])
        earliest = np.maximum.accumulate(np.where(rises, np.arange(len(rises)), 0))
        return largest[1:], offsets[earliest[1:]]


def no_entries(base_offset: int) -> OpenIndexes:
    """Begin the indexes of a segment."""
    offset_index, time_index = empty_offset_index(base_offset), empty_time_index(base_offset)
    return OpenIndexes(offset_index, time_index, 0, 0, time_index.last_entry)


def index_appends(
    appends: Appends, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES
) -> tuple[OffsetIndex, TimeIndex]:
    """Give the indexes of a closed segment that was made by these appends."""
    return no_entries(base_offset).with_appends(appends, interval_bytes).closed()


def index_batches(
    batches: Batches, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES
) -> tuple[OffsetIndex, TimeIndex]:
    """Give the indexes that a broker's recovery makes of a segment of these batches."""
    return index_appends(appends_of(batches), base_offset, interval_bytes)


def entry_rows(positions: Longs, interval_bytes: int) -> Longs:
    """Choose the appends that get an offset entry: numbers of their strictly rising `positions`.

    Where each would be followed is looked up for all at once; then a walk goes from entry to entry.
    """
    count = len(positions)
    after = np.searchsorted(positions, positions + interval_bytes, "right")
    number = int(np.searchsorted(positions, interval_bytes, "right"))
    if (after[number:] == np.arange(number + 1, count + 1)).all():
        return np.arange(number, count)
    following: list[int] = after.tolist()
    chosen: list[int] = []
    while number < count:
        chosen.append(number)
        number = following[number]
    return np.array(chosen, np.int64)
