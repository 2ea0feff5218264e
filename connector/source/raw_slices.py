"""The slices of a raw partition: a byte range for each segment, cut at index entries.

The rule: an index is a hint. Cuts lie where the batch headers confirm it, so a slice begins at a
batch of known offset. When the plan may read no more indexes, a large segment is wanted in slices
of equal numbers of offsets that name its index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from klog.connector.kafka_dir import segment_markers
from klog.connector.kafka_dir.aborted_transactions import (
    read_aborted_transactions,
    rows_between,
)
from klog.connector.kafka_dir.indexed_cuts import UNKNOWN_OFFSET, confirmed_cuts
from klog.connector.kafka_dir.partition_directory import Segment
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.root_urls import is_on_local_disk
from klog.connector.source import index_narrowing
from klog.connector.source.index_narrowing import IndexReads
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.slice_contract import TaskDict, to_dict
from klog.connector.source.slices import UNKNOWN, Slice
from klog.connector.source.task_sizing import pack
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs


def plan_range(
    offset_range: OffsetRange,
    log: RawPartition,
    target: int,
    index_reads: IndexReads,
    *,
    decide_markers: bool = False,
) -> list[TaskDict]:
    """Plan a range of offsets.

    Args:
        offset_range: The range.
        log: Its partition.
        target: About how many bytes a task gets.
        index_reads: How many indexes may be read.
        decide_markers: Whether to find out what the markers after each segment say, for a reader
            that does not follow them there.

    Raises:
        CorruptFileError: If a segment cannot be planned.
        FileNotFoundError: If the whole root has to be listed again.
    """

    def plan_now(now: RawPartition) -> list[TaskDict]:
        with index_reads.attempt():
            return _plan(offset_range, now, target, index_reads, decide_markers=decide_markers)

    return log.retry_if_replaced(plan_now)


def _plan(
    offset_range: OffsetRange,
    log: RawPartition,
    target: int,
    index_reads: IndexReads,
    *,
    decide_markers: bool,
) -> list[TaskDict]:
    if log.log_start > max(offset_range.start_offset, offset_range.log.log_start):
        raise FileNotFoundError(f"{log.name}: the log starts at offset {log.log_start} by now")
    aborted = None
    if offset_range.committed_only:
        aborted = read_aborted_transactions(log, offset_range.start_offset, offset_range.end_offset)
    plan = _RangePlan(offset_range, log, target, index_reads, aborted, decide_markers)
    sized = [
        (slice_, size)
        for segment, next_base in log.overlapping(
            offset_range.start_offset, offset_range.end_offset
        )
        for slice_, size in plan.segment_slices(segment, next_base)
        if slice_.size_bytes > 0 and slice_.offset_count > 0
    ]
    return [
        [to_dict(slice_) for slice_, _ in sized[first:end]]
        for first, end in pack([size for _, size in sized], target)
    ]


@dataclass(frozen=True, slots=True)
class _RangePlan:
    """The plan of one range: what all its segments have in common."""

    offset_range: OffsetRange
    log: RawPartition
    target: int
    index_reads: IndexReads
    aborted: Longs | None
    decide_markers: bool

    def segment_slices(self, segment: Segment, next_base: int) -> Iterator[tuple[Slice, int]]:
        """Yield the slices of one segment, each with about how many bytes it is of its own."""
        aborted_after = self._aborted_after(segment)
        for slice_, size_bytes in self._byte_ranges(segment, next_base):
            yield self._with_aborted(slice_, aborted_after), size_bytes

    def _aborted_after(self, segment: Segment) -> list[list[int]] | None:
        """Return the transactions aborted after a segment; None if that is not known.

        A broker's files on other stores are read by Python, which follows markers itself.
        """
        is_for_jvm = self.decide_markers and is_on_local_disk(self.log.root)
        if self.aborted is not None and is_for_jvm:
            return segment_markers.aborted_after(self.log, segment, self.offset_range.end_offset)
        return [] if self.log.is_active(segment) else None

    def _with_aborted(self, slice_: Slice, aborted_after: list[list[int]] | None) -> Slice:
        """Return a slice with what the transaction indexes say about its own offsets."""
        if self.aborted is None:
            return slice_
        aborted = rows_between(self.aborted, slice_.start_offset, slice_.end_offset).tolist()
        return replace(
            slice_,
            aborted=aborted + [row for row in aborted_after or [] if row not in aborted],
            markers_end_offset=max(self.log.log_end, self.offset_range.end_offset),
            are_markers_in_file=aborted_after is not None,
        )

    def _byte_ranges(self, segment: Segment, next_base: int) -> Iterator[tuple[Slice, int]]:
        reader = self.log.open(segment)
        try:
            full_slice = self._segment_slice(reader, next_base)
            is_complete = (
                self.offset_range.start_offset <= segment.base_offset
                and self.offset_range.end_offset >= next_base
            )
            size = full_slice.size_bytes
            if size <= (
                self.target
                if is_complete
                else min(index_narrowing.MAX_UNINDEXED_BYTES, self.target)
            ):
                yield full_slice, size
            elif self.index_reads.take(1):
                for slice_ in self._cut(reader, full_slice):
                    yield slice_, slice_.size_bytes
            else:
                yield from self._split(segment, full_slice)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(self.log.name)) from exc
        finally:
            reader.close()

    def _segment_slice(self, reader: SegmentReader, next_base: int) -> Slice:
        """Return the slice that has all readable bytes of a segment."""
        offset_range, segment = self.offset_range, reader.segment
        is_active = self.log.is_active(segment)
        readable = self.log.readable_bytes(reader)
        base_offset = segment.base_offset
        return Slice(
            topic=self.log.name.topic,
            partition=self.log.name.partition,
            topic_id=offset_range.log.topic_id,
            root=self.log.root,
            path=segment.log.path,
            is_committed=False,
            identity=reader.file.identity,
            stamp="" if is_active else reader.file.stamp,
            file_size_bytes=UNKNOWN if is_active else reader.file.size_bytes,
            segment_size_bytes=readable,
            base_offset=base_offset,
            offset_shift=0,
            start_position=0,
            end_position=readable,
            first_offset=UNKNOWN,
            limit_offset=next_base,
            start_offset=max(offset_range.start_offset, base_offset),
            end_offset=min(offset_range.end_offset, next_base),
            index_path="",
            index_size_bytes=0,
            crc32c=UNKNOWN,
            committed_only=offset_range.committed_only,
            aborted=[],
            markers_end_offset=UNKNOWN,
            are_markers_in_file=True,
        )

    def _cut(self, reader: SegmentReader, full_slice: Slice) -> Iterator[Slice]:
        """Yield slices cut at index entries; an index that does not fit is made from the log."""
        cuts = self._confirmed_cuts(reader, full_slice)
        if cuts is None:
            reader.rebuild_index()
            cuts = self._confirmed_cuts(reader, full_slice)
        if cuts is None:
            yield full_slice
            return
        for (start, first_offset), (end, next_first_offset) in pairwise(cuts):
            limit = (
                full_slice.limit_offset
                if next_first_offset == UNKNOWN_OFFSET
                else next_first_offset
            )
            yield replace(
                full_slice,
                start_position=start,
                end_position=end,
                first_offset=first_offset,
                limit_offset=limit,
                start_offset=max(full_slice.start_offset, first_offset),
                end_offset=min(full_slice.end_offset, limit),
            )

    def _confirmed_cuts(
        self, reader: SegmentReader, full_slice: Slice
    ) -> list[tuple[int, int]] | None:
        return confirmed_cuts(
            reader,
            reader.index_hint(),
            full_slice.start_offset,
            full_slice.end_offset,
            full_slice.end_position,
            self.target,
        )

    def _split(self, segment: Segment, full_slice: Slice) -> Iterator[tuple[Slice, int]]:
        """Yield slices of equal numbers of offsets, which name the segment's index.

        Without an index the slices would all read the segment from its start: then it is one.
        """
        index = segment.indexes.get("index")
        if index is None or not index.size_bytes:
            yield full_slice, full_slice.size_bytes
            return
        start, count = full_slice.start_offset, full_slice.offset_count
        size = full_slice.size_bytes * count // (full_slice.limit_offset - full_slice.base_offset)
        parts = min(max(-(-size // self.target), 1), count)
        for number in range(parts):
            yield (
                replace(
                    full_slice,
                    start_offset=start + count * number // parts,
                    end_offset=start + count * (number + 1) // parts,
                    index_path=index.path,
                    index_size_bytes=index.size_bytes,
                ),
                size // parts,
            )
