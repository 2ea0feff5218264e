"""The first half of a compaction: read all keys of a partition, and mark which records stay.

The rule: one task marks as many keys as the memory given holds; the others are marked behind it, a
range of them after the other, each by reading all keys again (`ranges.py` has several tasks do it).
What does not depend on keys, tombstones and the last batches of producers, comes with the first
ones. The dirty part is read first and the clean one against it; only where a broker wrote
transactions each task reads all headers before.

Of a dirty part that is cleaned at once (`at_once.py`) there is nothing to mark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow.compute as pc

from klog.connector.log.entries import Entry, aborted_of
from klog.connector.log.root import KlogRoot
from klog.connector.sink.identity import LOWEST_ID
from klog.connector.store.storage import Storage
from klog.jobs.choosing import open_root
from klog.jobs.compacting.rewriting import Rewritten
from klog.jobs.compacting.workload import cleaning_loops
from klog.jobs.entry_rows import EntryRows
from klog.jobs.segments import read_segment
from klog.logformat import batch as v2
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.keys import read_keys_by
from klog.logformat.cleaning.last_batches import LastBatches
from klog.logformat.cleaning.marks import Marking, SegmentMarks
from klog.logformat.cleaning.offset_map import KeyRange
from klog.logformat.cleaning.rewrite import NO_OFFSETS
from klog.logformat.cleaning.spent import Transactions
from klog.logformat.compiled.compiling import Loops
from klog.logformat.index import Longs, Mask
from klog.logformat.transactions import Decisions, aborted_by_index, rows_of

MAP_BYTES = 128 << 20
"""What the map of keys may take in each task: `log.cleaner.dedupe.buffer.size` of a broker."""


@dataclass(frozen=True, slots=True)
class MarkTask:
    """A partition to be marked: its segments below the end, and those behind it.

    `dirty_from` is an offset of the log, `memory_bytes` what the map of keys may take; `keys` are
    those that it is about. `remaining` is what the process that takes it has still to do, as a
    `workload`.
    """

    root: str
    storage: Storage
    segments: EntryRows
    behind: EntryRows
    dirty_from: int
    now_ms: int
    seed: Seed
    memory_bytes: int
    keys: KeyRange = field(default_factory=KeyRange)
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Marked:
    """What was found of a partition: a mark a segment, for these keys, and what is not of keys.

    `last_batches` are the last offsets of the batches by which producers are known,
    `spent_markers` the offsets of markers of whose transactions nothing is left; both rise.
    Segments behind those that have a mark were cleaned at once: `rewritten` is what became of them.
    """

    marks: tuple[SegmentMarks, ...]
    keys: KeyRange
    last_batches: Longs
    spent_markers: Longs
    rewritten: tuple[Rewritten, ...] = ()

    def joined(self, behind: Marked) -> Marked:
        """Give what was found for both ranges of keys; the first was about what is not of keys."""
        pairs = zip(self.marks, behind.marks, strict=True)
        marks = tuple(mine.joined(theirs) for mine, theirs in pairs)
        return replace(self, marks=marks, keys=KeyRange(self.keys.begin, behind.keys.end))


def mark(task: MarkTask, kernels: Loops | None) -> Marked:
    """Read the partition's keys and mark what stays of those that the memory holds, one at least.

    Raises `CorruptFileError` for a damaged segment, `UnsupportedFormatError` for one that cannot
    have the offsets that the log gives it.
    """
    return _marked(task, kernels, in_full=False)


def mark_all(task: MarkTask) -> Marked:
    """Mark for all the keys of a task, in as many passes as that takes; raises as `mark`."""
    return _marked(task, cleaning_loops(task.segments, task.remaining), in_full=True)


def _marked(task: MarkTask, kernels: Loops | None, *, in_full: bool) -> Marked:
    root = open_root(task.root, task.storage)
    found = transactions(root, task.segments, task.behind)
    look = _Look(Reading(root, found.decisions(), task.dirty_from), task, kernels)
    of_dirty, of_clean = LastBatches(), LastBatches()
    marks, keys = look.marked(task.keys, of_dirty.add, of_clean.add)
    while in_full and keys.end < task.keys.end:
        more, keys = look.marked(KeyRange(keys.end, task.keys.end))
        marks = [mine.joined(theirs) for mine, theirs in zip(marks, more, strict=True)]
    known = KeyRange(task.keys.begin, keys.end)
    if known.begin:  # What is not of keys came with the first ones.
        bare = tuple(replace(one, tombstones=b"") for one in marks)
        return Marked(bare, known, NO_OFFSETS, NO_OFFSETS)
    lasts = last_batches(root, task.behind)
    lasts.put_before(of_dirty)
    lasts.put_before(of_clean)
    return Marked(tuple(marks), known, lasts.kept(task.now_ms), found.spent_markers())


def clean_and_dirty(task: MarkTask) -> tuple[EntryRows, EntryRows]:
    """Part the segments into those that were cleaned before and those of which a part is dirty."""
    segments = task.segments
    dirty = int(np.searchsorted(segments.numbers("next_offset"), task.dirty_from, "right"))
    return segments.part(0, dirty), segments.part(dirty, len(segments))


@dataclass(frozen=True, slots=True)
class Reading:
    """Segments read for a cleaning; their transactions have ended as `decisions` say."""

    root: KlogRoot
    decisions: Decisions
    dirty_from: int

    def aborted(self, entry: Entry, batches: v2.Batches) -> Mask:
        """Tell which batches of a segment are data of aborted transactions."""
        # What was adopted says it too of those whose marker lies behind these segments.
        known = rows_of(aborted_of(entry))
        return self.decisions.aborted(batches, {}) | aborted_by_index(batches, known)

    def give(
        self,
        segments: EntryRows,
        begin: Callable[[], None],
        add: Callable[[bytes, v2.Batches, Mask, int], None],
        meet: Callable[[v2.Batches], None] | None = None,
    ) -> None:
        """Give all batches of segments to a marking, and `meet` their headers."""
        for entry in segments:
            begin()

            def take(data: bytes, batches: v2.Batches, entry: Entry = entry) -> None:
                if meet is not None:
                    meet(batches)
                add(data, batches, self.aborted(entry, batches), self.dirty_from)

            read_segment(self.root, entry, take)


class _Look:
    """A look at the keys of a partition, for one range of them after the other."""

    def __init__(self, reading: Reading, task: MarkTask, kernels: Loops | None) -> None:
        self._reading, self._task, self._kernels = reading, task, kernels
        self._clean, self._dirty = clean_and_dirty(task)
        self._straddles = bool(len(self._dirty) and self._dirty[0]["base_offset"] < task.dirty_from)
        if self._straddles:  # Its first records were cleaned before.
            self._clean = task.segments.part(0, len(self._clean) + 1)

    def marked(
        self,
        keys: KeyRange,
        meet_dirty: Callable[[v2.Batches], None] | None = None,
        meet_clean: Callable[[v2.Batches], None] | None = None,
    ) -> tuple[list[SegmentMarks], KeyRange]:
        """Mark for the keys of a range, as many as there is memory for; says which those are."""
        marking = self._marking(keys)
        self._reading.give(self._dirty, marking.begin_dirty, marking.add_dirty, meet_dirty)
        self._reading.give(self._clean, marking.begin_clean, marking.add_clean, meet_clean)
        of_dirty, of_clean = marking.marks()
        if self._straddles:
            of_dirty[0] = of_dirty[0].joined(of_clean.pop())
        return [*of_clean, *of_dirty], marking.keys

    def _marking(self, keys: KeyRange) -> Marking:
        kernels = self._kernels
        if kernels is None:
            return Marking(self._task.seed, self._task.memory_bytes, keys)
        read, make_map = read_keys_by(kernels.records), partial(HashedMap, kernels.tables)
        return Marking(self._task.seed, self._task.memory_bytes, keys, read, make_map)


def transactions(
    root: KlogRoot, *parts: EntryRows, meet: Callable[[v2.Batches], None] | None = None
) -> Transactions:
    """Meet the transactions of segments, if a broker may have written any of them.

    One that is cleaned may end behind what is: then what aborts it has to be known all the same.
    Then `meet` is given all headers.
    """
    found = Transactions()

    def take(data: bytes, batches: v2.Batches) -> None:
        found.add(data, batches)
        if meet is not None:
            meet(batches)

    if any(are_a_brokers(one) for one in parts):
        for part in parts:
            for entry in part:
                read_segment(root, entry, take)
    return found


def are_a_brokers(segments: EntryRows) -> bool:
    """Tell whether a producer of some segments is none of klog's."""
    least = pc.min(pc.list_flatten(segments.table["producer_ids"])).as_py()
    return least is not None and least < LOWEST_ID


def last_batches(root: KlogRoot, segments: EntryRows) -> LastBatches:
    """Meet the producers of segments by their headers."""
    found = LastBatches()
    for entry in segments:
        read_segment(root, entry, lambda _, batches: found.add(batches))
    return found
