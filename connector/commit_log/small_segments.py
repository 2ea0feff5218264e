"""Times in small segments: each is read at once, and their batches are decoded together.

The rule: a wide topic has thousands of small segments, and what is done for each of them is one
read; scanning and decoding is done for many at once. Only an answer that the data proves is
returned. All else, such as damage, or a batch whose late record is below the log start, is left to
the caller, who reads that segment alone. All offsets here are those in the file unless they are
called the log's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry, file_size_bytes
from klog.connector.store.parallel_reads import read_in_order
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import check_batch_offsets, scan_frames

MAX_WHOLE_BYTES = 64 << 10
"""A segment of no more bytes is read at once: that costs less than its indexes."""
GROUP_BYTES = 4 << 20
"""How many bytes of segments are decoded together: enough for thousands of the smallest."""


def find_in_small_segments(
    root: KlogRoot,
    entries: Sequence[SegmentEntry],
    timestamps_ms: Sequence[int],
    start_offsets: Sequence[int],
) -> dict[int, int]:
    """Return first offsets of times, by the number of the segment, as far as they are found.

    Args:
        root: The root of the segments.
        entries: Their entries.
        timestamps_ms: The time for each.
        start_offsets: The offset of the log to start at in each.

    Returns:
        The offsets of the log of the first records at or after the times. A segment that is not
        here is large, or has to be read alone.
    """
    small = [n for n, entry in enumerate(entries) if entry["size_bytes"] <= MAX_WHOLE_BYTES]
    times, starts = np.array(timestamps_ms, np.int64), np.array(start_offsets, np.int64)
    first_offsets: dict[int, int] = {}

    def find_in(group: Mapping[int, bytes]) -> None:
        numbers = np.array(list(group))
        shifts = np.array([entries[number]["offset_shift"] for number in group], np.int64)
        firsts = _find_in_group(list(group.values()), times[numbers], starts[numbers] - shifts)
        for number, offset, shift in zip(group, firsts.tolist(), shifts.tolist(), strict=True):
            if offset >= 0:
                first_offsets[number] = offset + shift

    contents = read_in_order(
        lambda number: _read(root, entries[number]), small, root.store.max_parallel_reads
    )
    group: dict[int, bytes] = {}
    size_bytes = 0
    for number, data in zip(small, contents, strict=True):
        if not data or len(data) != entries[number]["size_bytes"]:
            continue
        group[number] = data
        size_bytes += len(data)
        if size_bytes >= GROUP_BYTES:
            find_in(group)
            group, size_bytes = {}, 0
    if group:
        find_in(group)
    return first_offsets


def _read(root: KlogRoot, entry: SegmentEntry) -> bytes:
    """Return the bytes of a segment; none if it is missing or has another size."""
    try:
        file = root.store.open(root.segment_path(entry), file_size_bytes(entry))
        try:
            return file.read(0, entry["size_bytes"])
        finally:
            file.close()
    except (FileNotFoundError, CorruptRecordError):
        return b""


def _find_in_group(contents: Sequence[bytes], times: Longs, start_offsets: Longs) -> Longs:
    """Return the first offset of a time in each segment, -1 where the segment is to be read alone.

    It is that of the first batch that is late enough, or none.
    """
    firsts = np.full(len(contents), -1, np.int64)
    data = b"".join(contents)
    try:
        batches = scan_frames(data, 0, len(data))
        segment_of = _segment_of(batches, contents)
        if segment_of is None:
            return firsts
        is_late = batches.headers["max_timestamp"] >= times[segment_of]
        is_late &= batches.next_offsets > start_offsets[segment_of]
        late_numbers = np.flatnonzero(is_late)
        segments, first_late = np.unique(segment_of[late_numbers], return_index=True)
        late = late_numbers[first_late]
        is_v2 = ~batches.is_legacy[late]
        segments, late = segments[is_v2], late[is_v2]
        if not len(late):
            return firsts
        late_batches = v2.Batches(batches.starts[late], batches.ends[late], batches.headers[late])
        check_batch_crcs(data, late_batches)
        batch_of, offsets, timestamps = _decode(data, late_batches)
    except CorruptRecordError:
        return firsts
    is_match = timestamps >= times[segments][batch_of]
    is_match &= offsets >= start_offsets[segments][batch_of]
    matching, first_match = np.unique(batch_of[is_match], return_index=True)
    firsts[segments[matching]] = offsets[is_match][first_match]
    return firsts


def _segment_of(batches: v2.Batches, contents: Sequence[bytes]) -> Longs | None:
    """Return the number of each batch's segment; None if a segment is not complete batches."""
    ends = np.cumsum([len(content) for content in contents])
    if not len(batches) or not np.isin(ends, batches.ends).all():
        return None
    segment_of = np.searchsorted(ends, batches.starts, "right")
    is_falling = batches.base_offsets[1:] < batches.next_offsets[:-1]
    if (is_falling & (segment_of[1:] == segment_of[:-1])).any():
        return None
    return segment_of


def _decode(data: bytes, batches: v2.Batches) -> tuple[Longs, Longs, Longs]:
    """Return of each record the number of its batch, its offset and its timestamp.

    The batches are of several segments. To be decoded together they get rising offsets, which are
    replaced by their own afterwards.
    """
    counts = batches.headers["last_offset_delta"].astype(np.int64) + 1
    rising = np.cumsum(counts) - counts
    headers = batches.headers.copy()
    headers["base_offset"] = rising
    together = v2.Batches(batches.starts, batches.ends, headers)
    check_batch_offsets(together)
    columns = decode_records(data, together, ("timestamp_ms",))
    assert columns.timestamp_ms is not None
    batch_of = np.searchsorted(rising, columns.offset, "right") - 1
    offsets = columns.offset - rising[batch_of] + batches.base_offsets[batch_of]
    return batch_of, offsets, columns.timestamp_ms
