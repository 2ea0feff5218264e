"""Where in a segment the wanted offsets lie, by the segment's offset index: one read.

The rule: a plan reads at most 16 indexes, those of the first segments that are wanted in part.
After that a slice names its index, and the task that reads the slice reads the index. A small
segment is read from its start, and so is one whose index is missing or malformed.

An index may lie. That of a committed segment is believed, and the data that is read proves it. That
of a broker's is believed as far as headers at the ends of the byte range confirm it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from klog.connector.commit_log.segment_indexes import positions_between, read_segment_index
from klog.connector.kafka_dir.indexed_cuts import confirmed_cuts
from klog.connector.kafka_dir.segment_reader import SegmentHeaders
from klog.connector.source.slices import UNKNOWN, Slice
from klog.connector.store.readable_store import File, ReadableStore
from klog.logformat.indexes.offset_index import OffsetIndex

MAX_UNINDEXED_BYTES = 256 << 10
"""A segment of no more bytes is read from its start: that costs less than its index."""
MAX_INDEX_READS = 16
"""Of one plan. More would make the driver wait for what tasks do side by side."""


class IndexReads:
    """How many indexes a plan may still read."""

    def __init__(self, remaining: int = MAX_INDEX_READS) -> None:
        """Allow `remaining` reads."""
        self._remaining = remaining

    def take(self, count: int) -> int:
        """Return how many more indexes may be read, and count them as read.

        Args:
            count: How many the caller would read.
        """
        taken = min(count, self._remaining)
        self._remaining -= taken
        return taken

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count the reads of a block only if it ends well: a plan that fails is made again."""
        remaining = self._remaining
        try:
            yield
        except BaseException:
            self._remaining = remaining
            raise


def range_facts(
    start_position: int, end_position: int, segment_size_bytes: int, first_offset: int, crc32c: int
) -> tuple[int, int]:
    """Return what is known of a byte range of a committed segment: first offset and CRC-32C.

    A byte range that begins later begins at an unknown offset. The CRC is that of all bytes.

    Args:
        start_position: Where the byte range begins.
        end_position: Where it ends.
        segment_size_bytes: The size of the segment.
        first_offset: The first offset of the segment, or `UNKNOWN`.
        crc32c: The CRC-32C of the segment, or `UNKNOWN`.
    """
    is_all = not start_position and end_position == segment_size_bytes
    return UNKNOWN if start_position else first_offset, crc32c if is_all else UNKNOWN


def narrow(store: ReadableStore, slice_: Slice, file: File) -> Slice:
    """Return a slice whose byte range the index that it names has narrowed: one read.

    Args:
        store: The store of the slice.
        slice_: The slice; its wanted offsets are as the file has them.
        file: The open file of the slice.
    """
    if not slice_.index_path:
        return slice_
    index = read_segment_index(
        store,
        slice_.index_path,
        slice_.index_size_bytes,
        slice_.base_offset,
        slice_.segment_size_bytes,
    )
    if index is None:
        return slice_
    if slice_.is_committed:
        return _narrow_committed(slice_, index)
    return _narrow_raw(slice_, index, file)


def _narrow_committed(slice_: Slice, index: OffsetIndex) -> Slice:
    start, end = positions_between(
        index, slice_.segment_size_bytes, slice_.start_offset, slice_.end_offset - 1
    )
    first_offset, crc32c = range_facts(
        start, end, slice_.segment_size_bytes, slice_.first_offset, slice_.crc32c
    )
    return replace(
        slice_, start_position=start, end_position=end, first_offset=first_offset, crc32c=crc32c
    )


def _narrow_raw(slice_: Slice, index: OffsetIndex, file: File) -> Slice:
    headers = SegmentHeaders(file, slice_.base_offset)
    cuts = confirmed_cuts(
        headers, index, slice_.start_offset, slice_.end_offset, slice_.end_position
    )
    if cuts is None:
        return slice_
    (start, first_offset), (end, _) = cuts
    return replace(slice_, start_position=start, end_position=end, first_offset=first_offset)
