"""The second half of a compaction: the segments that are left of marked ones.

The rule: a task takes neighbours that together are no larger than a segment may be, and leaves one
segment, or none if nothing is left of them; a group in which every batch would stay as it is stays
as it is, with nothing written. What a task has written and no commit names, vacuum takes away.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from klog.connector.log.entries import Entry
from klog.connector.log.paths import SegmentPath
from klog.connector.log.rewriting import SegmentWriter, Span
from klog.connector.log.root import KlogRoot
from klog.connector.log.whole import whole_segment
from klog.connector.store.storage import Storage
from klog.jobs.choosing import open_root
from klog.jobs.compacting.workload import cleaning_loops
from klog.jobs.entry_rows import EntryRows
from klog.jobs.grouping import Group, Limits
from klog.jobs.segments import in_segment
from klog.logformat.cleaning.marks import SegmentMarks
from klog.logformat.cleaning.rewrite import Fates, Rewrite
from klog.logformat.cleaning.thinned import thin_by
from klog.logformat.index import Longs
from klog.logformat.restamp import Run, moved


@dataclass(frozen=True, slots=True)
class Place:
    """Where what is left of a partition goes, and what a segment of it may hold.

    Its files are of birth `birth` and have indexes of `interval_bytes`.
    """

    topic: str
    partition: int
    birth: int
    interval_bytes: int
    limits: Limits

    def put(self, root: KlogRoot, segments: EntryRows, runs: Iterator[Run]) -> Rewritten:
        """Write one segment of what is left of some, which stands for all their offsets."""
        base = segments[0]["base_offset"]
        # Random, as a task may run twice at a time, and put replaces.
        file = SegmentPath(self.topic, self.partition, base, self.birth, secrets.token_hex(8))
        writer = SegmentWriter(root.store, root.path, file, self.interval_bytes)
        least = int(segments.numbers("min_timestamp_ms").min())
        span = Span(base, segments[-1]["next_offset"], least, "compact")
        return Rewritten(self.partition, tuple(segments.files()), writer.write(runs, span))


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Neighbouring segments of a partition, their marks, and where what is left of them goes.

    `remaining` is as of `MarkTask`.
    """

    root: str
    storage: Storage
    place: Place
    segments: EntryRows
    marks: tuple[SegmentMarks, ...]
    fates: Fates
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a group: the files that are replaced, none where all stays, and by what."""

    partition: int
    inputs: tuple[str, ...]
    output: Entry | None


def groups(
    segments: Iterable[Entry], marks: Sequence[SegmentMarks], limits: Limits
) -> Iterator[slice]:
    """Group neighbours that one segment may hold; plain ones that lose none stay out."""
    open_group: Group | None = None
    for number, (entry, mark) in enumerate(zip(segments, marks, strict=True)):
        stays = mark.is_plain and mark.kept_count == mark.count
        one = Group.of(number, entry)
        if open_group is not None and not stays and open_group.joined(one).fits(limits):
            open_group = open_group.joined(one)
            continue
        if open_group is not None:
            yield slice(open_group.begin, open_group.end)
        open_group = None if stays else one
    if open_group is not None:
        yield slice(open_group.begin, open_group.end)


def fates_within(fates: Fates, bounds: tuple[int, int]) -> Fates:
    """Give what of a partition's fates is about offsets from the first to before the second."""
    return replace(
        fates,
        kept_empty=_within(fates.kept_empty, bounds),
        spent_markers=_within(fates.spent_markers, bounds),
    )


def _within(offsets: Longs, bounds: tuple[int, int]) -> Longs:
    begin, end = np.searchsorted(offsets, bounds)
    some: Longs = offsets[begin:end].copy()  # Else the whole is held with it.
    return some


def rewrite(task: RewriteTask) -> Rewritten:
    """Write what is left of a group. Raises as `marking.mark` does."""
    root = open_root(task.root, task.storage)
    if _stays(root, task):
        return Rewritten(task.place.partition, (), None)
    return task.place.put(root, task.segments, _left(root, task))


def _left(root: KlogRoot, task: RewriteTask) -> Iterator[Run]:
    kernels = cleaning_loops(task.segments, task.remaining)
    thin = None if kernels is None else thin_by(kernels.records)
    for entry, marks in zip(task.segments, task.marks, strict=True):
        one = Rewrite(marks, task.fates, thin)
        for chunk in whole_segment(root, entry):
            with in_segment(root, entry, chunk.position):
                # In a list: what it raises has to be raised here.
                runs = list(one.clean(chunk.data, moved(chunk.batches, entry["offset_shift"])))
            for run in runs:
                yield run.stamped() if entry["offset_shift"] else run
        one.close()


def _stays(root: KlogRoot, task: RewriteTask) -> bool:
    """Tell whether every batch of the group would stay as it is, by headers alone."""
    if any(one.kept_count < one.count for one in task.marks):
        return False
    for entry, marks in zip(task.segments, task.marks, strict=True):
        one = Rewrite(marks, task.fates)
        for chunk in whole_segment(root, entry):
            if not one.leaves(chunk.data, moved(chunk.batches, entry["offset_shift"])):
                return False
    return True
