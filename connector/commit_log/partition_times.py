"""Times in partitions of one topic of a klog root: by the commits, else by reading segments.

The rule: the commits say for all partitions at once which segment has the answer, and often the
answer. The segments that have to be read are read together (`segment_time_lookup`). A segment whose
records turn out to be earlier, or to lie below the log start, leaves the answer to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from klog.connector.commit_log import segment_time_lookup
from klog.connector.commit_log.segment_time_lookup import SegmentLookup
from klog.logformat.array_types import Longs
from klog.logformat.arrow_values import from_numpy
from klog.logformat.batches.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from klog.connector.commit_log.committed_snapshot import CommittedPartition


def find_first_offsets(
    logs: Sequence[CommittedPartition], timestamps_ms: Sequence[int], end_offsets: Sequence[int]
) -> list[int | None]:
    """Return the offset of the first record at or after a time in each partition.

    Args:
        logs: Partitions of one snapshot of a topic.
        timestamps_ms: The time for each, in ms since the epoch.
        end_offsets: Records of each at or above its offset do not count.

    Returns:
        The offsets; None where there is no such record.

    Raises:
        CorruptFileError: A segment that has to be read is missing or damaged.
        OptionError: It is of an earlier version, and vacuum has deleted its file.
    """
    if not logs:
        return []
    table, times = logs[0].table, np.array(timestamps_ms, np.int64)
    log_starts = np.array([log.log_start for log in logs], np.int64)
    ends = np.array(end_offsets, np.int64)
    log_of, rows = _rows_of(logs)
    may_have = table.numbers("max_timestamp_ms")[rows] >= times[log_of]
    may_have &= table.numbers("next_offset")[rows] > log_starts[log_of]
    may_have &= table.numbers("base_offset")[rows] < ends[log_of]
    log_of, rows = log_of[may_have], rows[may_have]
    base_offsets = table.numbers("base_offset")[rows]
    # No record of such a segment is earlier, and its first record is at its base offset.
    is_known = table.is_appended[rows] & (base_offsets >= log_starts[log_of])
    is_known &= table.numbers("min_timestamp_ms")[rows] >= times[log_of]

    offsets = np.full(len(logs), -1, np.int64)
    pending, candidates = np.unique(log_of, return_index=True)
    last_candidates = np.searchsorted(log_of, pending, "right") - 1
    while len(pending):
        known = is_known[candidates]
        firsts = np.where(known, base_offsets[candidates], -1)
        firsts[~known] = _read_segments(
            logs, rows[candidates[~known]], times[pending[~known]], pending[~known]
        )
        offsets[pending] = firsts
        is_left = (firsts < 0) & (candidates < last_candidates)
        pending, last_candidates = pending[is_left], last_candidates[is_left]
        candidates = candidates[is_left] + 1
    return [
        None if offset < 0 or offset >= end else offset
        for offset, end in zip(offsets.tolist(), end_offsets, strict=True)
    ]


def find_max_timestamps(logs: Sequence[CommittedPartition]) -> list[int | None]:
    """Return the largest timestamp in each partition; None for one without any.

    The commits say it of a segment. One that the log start cuts is read if its timestamp is larger
    than those of the others, because the record that has it may be below the log start.

    Args:
        logs: Partitions of one snapshot of a topic.

    Raises:
        CorruptFileError: A segment that has to be read is missing or damaged.
        OptionError: It is of an earlier version, and vacuum has deleted its file.
    """
    if not logs:
        return []
    table = logs[0].table
    log_starts = np.array([log.log_start for log in logs], np.int64)
    log_of, rows = _rows_of(logs)
    timestamps = table.numbers("max_timestamp_ms")[rows]
    is_cut = table.numbers("base_offset")[rows] < log_starts[log_of]
    is_readable = table.numbers("next_offset")[rows] > log_starts[log_of]
    max_ms = np.full(len(logs), NO_TIMESTAMP, np.int64)
    is_after = is_readable & ~is_cut
    np.maximum.at(max_ms, log_of[is_after], timestamps[is_after])
    is_read = is_readable & is_cut & (timestamps > max_ms[log_of])
    lookups = _lookups(logs, rows[is_read], timestamps[is_read], log_of[is_read])
    remaining = segment_time_lookup.max_timestamps(logs[0].root, lookups, logs[0].files)
    np.maximum.at(max_ms, log_of[is_read], np.array(remaining, np.int64))
    return [None if time_ms == NO_TIMESTAMP else time_ms for time_ms in max_ms.tolist()]


def _rows_of(logs: Sequence[CommittedPartition]) -> tuple[Longs, Longs]:
    """Return the rows of the partitions' segments, and for each the number of its partition."""
    counts = np.array([len(log.rows) for log in logs], np.int64)
    starts = np.array([log.rows.start for log in logs], np.int64)
    log_of = np.repeat(np.arange(len(logs)), counts)
    return log_of, np.arange(len(log_of)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def _read_segments(
    logs: Sequence[CommittedPartition], rows: Longs, times: Longs, log_of: Longs
) -> list[int]:
    """Return the first offset of a time in each segment, and -1 where there is none."""
    lookups = _lookups(logs, rows, times, log_of)
    first_offsets = segment_time_lookup.first_offsets(logs[0].root, lookups, logs[0].files)
    return [-1 if offset is None else offset for offset in first_offsets]


def _lookups(
    logs: Sequence[CommittedPartition], rows: Longs, times: Longs, log_of: Longs
) -> list[SegmentLookup]:
    """Return what to look up in segments, whose files are there."""
    if not len(rows):
        return []
    segments = logs[0].table.table.take(from_numpy(rows))
    logs[0].files.check(segments)
    return [
        SegmentLookup(entry, time_ms, logs[number].log_start)
        for entry, time_ms, number in zip(
            segments.to_pylist(), times.tolist(), log_of.tolist(), strict=True
        )
    ]
