"""Rewrite marked segments: write the batches that stay.

The rule: a task takes neighbouring segments that together are no larger than a segment may be, and
writes one segment, or none if nothing stays. If every batch of the group would stay
unchanged, nothing is written. Vacuum deletes the segments of tasks that no commit names.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.segment_writer import SegmentBounds, write_segment
from klog.connector.commit_log.verified_segment import read_verified
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking.cleaning_workload import get_cleaning_kernels
from klog.jobs.shared.segment_grouping import SegmentGroup, SegmentLimits
from klog.jobs.shared.segment_walk import locate_errors
from klog.logformat.array_types import Longs
from klog.logformat.batches.rewrite_offsets import BatchRun, shift_offsets
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.filter_records import compiled_filter
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap


@dataclass(frozen=True, slots=True)
class RewriteTarget:
    """Where the rewritten segments of a partition go.

    `base_version` is the version that the compaction was planned on, `interval_bytes` the topic's
    `index.interval.bytes`.
    """

    topic: str
    partition: int
    base_version: int
    interval_bytes: int
    limits: SegmentLimits

    def write(
        self, root: KlogRoot, segments: EntryRows, runs: Iterator[BatchRun]
    ) -> RewrittenGroup:
        """Write one segment that replaces a group.

        Args:
            root: The klog root.
            segments: The group; the new segment has the range of offsets of all of them.
            runs: The batches that stay.
        """
        base_offset = segments[0]["base_offset"]
        # Random, as a task may run twice at a time, and put replaces.
        attempt = secrets.token_hex(8)
        path = SegmentPath(self.topic, self.partition, base_offset, self.base_version, attempt)
        min_timestamp_ms = int(segments.numbers("min_timestamp_ms").min())
        end_offset = segments[-1]["next_offset"]
        bounds = SegmentBounds(base_offset, end_offset, min_timestamp_ms, "compact")
        entry = write_segment(root.store, root.path, path, self.interval_bytes, runs, bounds)
        return RewrittenGroup(tuple(segments.files()), entry)


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """A group of neighbouring segments, the bitmaps of their records, and the target.

    `remaining_records` is as in `MarkTask`.
    """

    root: str
    storage: StorageOptions
    target: RewriteTarget
    segments: EntryRows
    bitmaps: tuple[RetainedBitmap, ...]
    context: CleaningContext
    remaining_records: int = 0


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """The files that a group's new segment replaces, none if all stay, and its entry, if any."""

    inputs: tuple[str, ...]
    output: SegmentEntry | None


def groups_to_rewrite(
    segments: Iterable[SegmentEntry], bitmaps: Sequence[RetainedBitmap], limits: SegmentLimits
) -> Iterator[slice]:
    """Yield the groups of neighbours to be rewritten, by number.

    A plain segment that loses no record is in no group.

    Args:
        segments: The segments.
        bitmaps: The bitmap of each.
        limits: What one segment may hold.
    """
    group: SegmentGroup | None = None
    for number, (entry, bitmap) in enumerate(zip(segments, bitmaps, strict=True)):
        stays = bitmap.is_plain and bitmap.retained_count == bitmap.count
        alone = SegmentGroup.of(number, entry)
        if group is not None and not stays and group.joined(alone).fits(limits):
            group = group.joined(alone)
            continue
        if group is not None:
            yield slice(group.start, group.stop)
        group = None if stays else alone
    if group is not None:
        yield slice(group.start, group.stop)


def context_within(context: CleaningContext, start: int, end: int) -> CleaningContext:
    """Return what of a partition's context is about offsets from `start` to before `end`.

    Args:
        context: The context of a partition.
        start: The first offset.
        end: The offset after the last one.
    """
    return replace(
        context,
        retain_empty_offsets=_within(context.retain_empty_offsets, start, end),
        removable_markers=_within(context.removable_markers, start, end),
    )


def _within(offsets: Longs, start: int, end: int) -> Longs:
    first, stop = np.searchsorted(offsets, (start, end))
    part: Longs = offsets[first:stop].copy()  # A view would keep all of them in memory.
    return part


def rewrite_group(task: RewriteTask) -> RewrittenGroup:
    """Write the batches of a group that stay.

    Args:
        task: The group and the bitmaps of its records.

    Returns:
        The replaced files and the new entry; neither if all batches stay unchanged.

    Raises:
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    root = open_klog_root(task.root, task.storage)
    if _all_batches_stay(root, task):
        return RewrittenGroup((), None)
    return task.target.write(root, task.segments, _retained_runs(root, task))


def _retained_runs(root: KlogRoot, task: RewriteTask) -> Iterator[BatchRun]:
    kernels = get_cleaning_kernels(task.segments, task.remaining_records)
    record_filter = None if kernels is None else compiled_filter(kernels.records)
    for entry, bitmap in zip(task.segments, task.bitmaps, strict=True):
        cleaner = SegmentCleaner(bitmap, task.context, record_filter)
        for chunk in read_verified(root, entry):
            with locate_errors(root, entry, chunk.position):
                batches = shift_offsets(chunk.batches, entry["offset_shift"])
                # A list, so that its errors are raised within the block.
                runs = list(cleaner.clean(chunk.data, batches))
            for run in runs:
                yield run.rewritten() if entry["offset_shift"] else run
        cleaner.close()


def _all_batches_stay(root: KlogRoot, task: RewriteTask) -> bool:
    """Return whether every batch of the group would stay unchanged, by headers alone."""
    if any(bitmap.retained_count < bitmap.count for bitmap in task.bitmaps):
        return False
    for entry, bitmap in zip(task.segments, task.bitmaps, strict=True):
        cleaner = SegmentCleaner(bitmap, task.context)
        for chunk in read_verified(root, entry):
            batches = shift_offsets(chunk.batches, entry["offset_shift"])
            if not cleaner.retains_all(chunk.data, batches):
                return False
    return True
