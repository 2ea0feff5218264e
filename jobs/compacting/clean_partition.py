"""Clean the dirty part of a partition in one pass, from its newest record to its oldest (ADR 11).

The rule: a record is its key's last one if no later record has the key, so nothing is read twice.
Batches that stay wait until they fill a segment, or until an unchanged segment comes; then they are
written. Then the records of the clean part are marked against the keys of the dirty part.

This needs compiled kernels, memory for all keys of the dirty part, and room for what waits. If
memory or room runs out, the pass ends; no commit names what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.verified_segment import read_verified_backwards
from klog.connector.open_root import open_klog_root
from klog.jobs.compacting.reverse_spool import ReverseSpool
from klog.jobs.compacting.rewrite_segments import RewriteTarget, RewrittenGroup, context_within
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking.cleaning_reader import (
    CleaningReader,
    has_broker_producers,
    read_last_batches,
    read_transactions,
)
from klog.jobs.shared.marking.cleaning_workload import key_decoder
from klog.jobs.shared.marking.mark_records import (
    MarkTask,
    PartitionMarks,
    split_clean_and_dirty,
)
from klog.jobs.shared.segment_grouping import SegmentGroup
from klog.jobs.shared.segment_walk import locate_errors
from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.rewrite_offsets import BatchRun, shift_offsets
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_newest_first import CleanedBlock, NewestFirstCleaner
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.offset_map import KeyRange
from klog.logformat.cleaning.producer_last_batches import ProducerLastBatches
from klog.logformat.cleaning.retained_records import KeyScan
from klog.logformat.compiled.kernel_types import CleaningKernels

MAX_BUFFER_BYTES = 32 << 20
"""So much of a segment is in memory while it is read backwards, and so much of what waits."""


@dataclass(frozen=True, slots=True)
class CleanTask:
    """A partition to be cleaned, and where its new segments go.

    `end_offset` is the offset up to which it is cleaned, `delete_horizon_ms` the horizon that
    tombstones get.
    """

    marking: MarkTask
    target: RewriteTarget
    end_offset: int
    delete_horizon_ms: int


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """A partition whose dirty part is rewritten; the marks are those of its clean segments."""

    rewritten: tuple[RewrittenGroup, ...]
    clean_marks: PartitionMarks


def clean_partition(task: CleanTask, kernels: CleaningKernels) -> CleanedPartition:
    """Clean the dirty part of a partition, and mark the records of its clean part.

    Args:
        task: The partition.
        kernels: The compiled kernels.

    Raises:
        OffsetMapFullError: The keys of the dirty part do not fit memory.
        SpoolFullError: There is no room for the batches that wait to be written.
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    marking = task.marking
    root = open_klog_root(marking.root, marking.storage)
    clean, dirty = split_clean_and_dirty(marking)
    header_batches = ProducerLastBatches()
    transactions = read_transactions(
        root, marking.segments, marking.later_segments, header_batches.add
    )
    reader = CleaningReader(root, transactions.outcomes(), marking.first_dirty_offset)
    producers = _RetainedProducers(root, marking, header_batches)
    offset_map = CompiledOffsetMap(kernels.tables, marking.map_bytes)
    cleaner = NewestFirstCleaner(kernels, marking.seed, offset_map, marking.first_dirty_offset)
    context = CleaningContext(
        marking.now_ms,
        task.delete_horizon_ms,
        np.union1d(producers.last_offsets(), [task.end_offset - 1]),
        transactions.removable_markers(),
    )

    def clean_segment(entry: SegmentEntry) -> Iterator[CleanedBlock]:
        for chunk in read_verified_backwards(root, entry, MAX_BUFFER_BYTES):
            with locate_errors(root, entry, chunk.position):
                batches = shift_offsets(chunk.batches, entry["offset_shift"])
                first, end = int(batches.base_offsets[0]), int(batches.next_offsets[-1])
                chunk_context = context_within(context, first, end)
                retained = producers.add_batches(chunk_context.retain_empty_offsets, batches)
                chunk_context = replace(chunk_context, retain_empty_offsets=retained)
                is_aborted = reader.is_aborted(entry, batches)
                yield from cleaner.clean(chunk.data, batches, is_aborted, chunk_context)

    rewritten = _rewrite_segments(root, dirty, task.target, clean_segment)
    scan = KeyScan(
        marking.seed, marking.map_bytes, None, key_decoder(kernels), lambda *_: offset_map
    )
    clean_batches = ProducerLastBatches()
    reader.read(clean, scan.start_clean_segment, scan.add_clean, clean_batches.add)
    _, bitmaps = scan.bitmaps()
    producers.add_clean_part(clean_batches)
    marks = PartitionMarks(
        tuple(bitmaps), KeyRange(), producers.last_offsets(), transactions.removable_markers()
    )
    return CleanedPartition(rewritten, marks)


class _RetainedProducers:
    """The last batches of producers, as far as a pass from the end of a partition has seen them.

    Only a later control batch can change which batches count, and klog writes none. If a broker
    wrote any segment, all headers are read before the pass.
    """

    def __init__(self, root: KlogRoot, task: MarkTask, header_batches: ProducerLastBatches) -> None:
        """Begin with the batches of all headers, or with those after the segments."""
        self._now_ms = task.now_ms
        self._has_all = has_broker_producers(task.segments) or has_broker_producers(
            task.later_segments
        )
        self._last_batches = (
            header_batches if self._has_all else read_last_batches(root, task.later_segments)
        )

    def last_offsets(self) -> Longs:
        """Return the last offsets of the batches that stay even empty, as far as they are known."""
        return self._last_batches.last_offsets(self._now_ms)

    def add_batches(self, retained: Longs, batches: v2.Batches) -> Longs:
        """Add batches that come before all added so far, and return which batches stay even empty.

        Args:
            retained: Last offsets of batches that stay anyway.
            batches: The batches.
        """
        if self._has_all:
            return retained
        added = ProducerLastBatches()
        added.add(batches)
        self._last_batches.prepend(added)
        return np.union1d(retained, self._last_batches.last_offsets(self._now_ms, among=added))

    def add_clean_part(self, clean_batches: ProducerLastBatches) -> None:
        """Add the batches of the clean part, which comes before the dirty part."""
        if not self._has_all:
            self._last_batches.prepend(clean_batches)


def _rewrite_segments(
    root: KlogRoot,
    segments: EntryRows,
    target: RewriteTarget,
    clean_segment: Callable[[SegmentEntry], Iterator[CleanedBlock]],
) -> tuple[RewrittenGroup, ...]:
    """Rewrite the segments that lose anything, the last one first."""
    with closing(_GroupWriter(root, segments, target)) as writer:
        for number in range(len(segments) - 1, -1, -1):
            entry = segments[number]
            segment, stays = SegmentGroup.of(number, entry), True
            writer.start_segment(segment)
            for block in clean_segment(entry):
                writer.add(block.runs, entry)
                stays = stays and block.is_unchanged
            writer.end_segment(segment, stays=stays)
        writer.flush()
        return tuple(writer.rewritten)


class _GroupWriter:
    """Collects neighbours that become one segment, and the batches of them that stay."""

    def __init__(self, root: KlogRoot, segments: EntryRows, target: RewriteTarget) -> None:
        self._root, self._segments, self._target = root, segments, target
        self._group: SegmentGroup | None = None
        self._spool = ReverseSpool(MAX_BUFFER_BYTES)
        self.rewritten: list[RewrittenGroup] = []

    def start_segment(self, segment: SegmentGroup) -> None:
        """Begin the next segment; write the group if the segment does not fit into it."""
        limits = self._target.limits
        if self._group is not None and not segment.joined(self._group).fits(limits):
            self.flush()
        self._spool.set_savepoint()

    def add(self, runs: Sequence[BatchRun], entry: SegmentEntry) -> None:
        """Add a block of the segment, which comes before all added so far."""
        self._spool.add([run.rewritten() for run in runs] if entry["offset_shift"] else runs)

    def end_segment(self, segment: SegmentGroup, *, stays: bool) -> None:
        """Join the segment to the group; an unchanged one ends the group."""
        if stays:
            self._spool.roll_back()
            self.flush()
        else:
            self._group = segment if self._group is None else segment.joined(self._group)

    def flush(self) -> None:
        """Write the group, if there is one."""
        if self._group is not None:
            segments = self._segments.part(self._group.start, self._group.stop)
            group = self._target.write(self._root, segments, self._spool.drain())
            self.rewritten.append(group)
            self._group = None

    def close(self) -> None:
        """Drop what was not written."""
        self._spool.close()
