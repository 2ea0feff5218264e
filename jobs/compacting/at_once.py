"""The dirty part of a partition, cleaned and written in one pass from its end.

The rule: a record is its key's last one if no key behind it is the same, so that nothing has to be
read twice (`logformat/cleaning/newest_first.py`). What is left waits until it is as much as one
segment may hold, or until there is a segment that stays as it is, and is put. What is clean is
marked against the keys of what is dirty, as `marking.py` does it.

It takes compiled loops, memory for all keys of the dirty part, and room for what waits. Where one
of these is missing, what was written is garbage that no commit names, and all of it is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import numpy as np

from klog.connector.log.entries import Entry
from klog.connector.log.root import KlogRoot
from klog.connector.log.whole import whole_segment_backwards
from klog.jobs.choosing import open_root
from klog.jobs.compacting.marking import (
    Marked,
    MarkTask,
    Reading,
    are_a_brokers,
    clean_and_dirty,
    last_batches,
    mark,
    transactions,
)
from klog.jobs.compacting.reverse_spool import NoRoomError, ReverseSpool
from klog.jobs.compacting.rewriting import Place, Rewritten, fates_within
from klog.jobs.compacting.workload import cleaning_loops
from klog.jobs.entry_rows import EntryRows
from klog.jobs.grouping import Group
from klog.jobs.segments import in_segment
from klog.logformat import batch as v2
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.keys import read_keys_by
from klog.logformat.cleaning.last_batches import LastBatches
from klog.logformat.cleaning.marks import Marking
from klog.logformat.cleaning.newest_first import Left, MapFullError, NewestFirst
from klog.logformat.cleaning.offset_map import KeyRange
from klog.logformat.cleaning.rewrite import Fates
from klog.logformat.compiled.compiling import Loops
from klog.logformat.index import Longs
from klog.logformat.restamp import Run, moved

HELD_BYTES = 32 << 20
"""As much of a segment is held to be read from its end, and of what is left to be put."""


@dataclass(frozen=True, slots=True)
class CleanTask:
    """A partition to be marked, or cleaned as far as it can be at once, and where that goes.

    `end` is the offset up to which it is cleaned, `horizon_ms` as of `Fates`.
    """

    marking: MarkTask
    place: Place
    end: int
    horizon_ms: int


def clean_or_mark(task: CleanTask) -> Marked:
    """Clean what is dirty and mark what is clean, or mark all of it. Raises as `mark` does."""
    kernels = cleaning_loops(task.marking.segments, task.marking.remaining)
    if kernels is not None:
        with suppress(MapFullError, NoRoomError):
            return _cleaned(task, kernels)
    return mark(task.marking, kernels)


def _cleaned(task: CleanTask, found: Loops) -> Marked:
    own = task.marking
    root = open_root(own.root, own.storage)
    clean, dirty = clean_and_dirty(own)
    lasts = LastBatches()
    met = transactions(root, own.segments, own.behind, meet=lasts.add)
    reading = Reading(root, met.decisions(), own.dirty_from)
    producers = _Producers(root, own, lasts)
    keys = HashedMap(found.tables, own.memory_bytes)
    newest = NewestFirst(found, own.seed, keys, own.dirty_from)
    known = np.union1d(producers.kept(), [task.end - 1])
    fates = Fates(own.now_ms, task.horizon_ms, known, met.spent_markers())

    def blocks(entry: Entry) -> Iterator[Left]:
        for chunk in whole_segment_backwards(root, entry, HELD_BYTES):
            with in_segment(root, entry, chunk.position):
                batches = moved(chunk.batches, entry["offset_shift"])
                bounds = int(batches.base_offsets[0]), int(batches.next_offsets[-1])
                here = fates_within(fates, bounds)
                here = replace(here, kept_empty=producers.join(here.kept_empty, batches))
                aborted = reading.aborted(entry, batches)
                yield from newest.clean(chunk.data, batches, aborted, here)

    rewritten = _written(root, dirty, task.place, blocks)
    read = read_keys_by(found.records)
    marking = Marking(own.seed, own.memory_bytes, None, read, lambda *_: keys)
    of_clean = LastBatches()
    reading.give(clean, marking.begin_clean, marking.add_clean, of_clean.add)
    _, marks = marking.marks()
    producers.meet_clean(of_clean)
    return Marked(tuple(marks), KeyRange(), producers.kept(), met.spent_markers(), rewritten)


class _Producers:
    """The last batches of producers, as far as they are known from the end of a partition.

    Only a control batch in front of others can change which of those count, and klog writes none:
    if a broker wrote anything, all headers are read before.
    """

    def __init__(self, root: KlogRoot, task: MarkTask, lasts: LastBatches) -> None:
        """Take those of the whole partition, if a broker wrote any of it."""
        self._now_ms = task.now_ms
        self._are_known = are_a_brokers(task.segments) or are_a_brokers(task.behind)
        self._lasts = lasts if self._are_known else last_batches(root, task.behind)

    def kept(self) -> Longs:
        """Give the last offsets of those that stay even if no record does, as far as is known."""
        return self._lasts.kept(self._now_ms)

    def join(self, kept: Longs, batches: v2.Batches) -> Longs:
        """Add those of some batches to offsets that stay anyway; all behind were met."""
        if self._are_known:
            return kept
        here = LastBatches()
        here.add(batches)
        self._lasts.put_before(here)
        return np.union1d(kept, self._lasts.kept(self._now_ms, among=here))

    def meet_clean(self, clean: LastBatches) -> None:
        """Meet the clean part, all at once."""
        if not self._are_known:
            self._lasts.put_before(clean)


def _written(
    root: KlogRoot,
    segments: EntryRows,
    place: Place,
    blocks: Callable[[Entry], Iterator[Left]],
) -> tuple[Rewritten, ...]:
    """Put what is left of the segments that lose anything, the last one first."""
    with closing(_Neighbours(root, segments, place)) as neighbours:
        for number in range(len(segments) - 1, -1, -1):
            entry = segments[number]
            one, stays = Group.of(number, entry), True
            neighbours.make_room(one)
            for left in blocks(entry):
                neighbours.add(left.runs, entry)
                stays = stays and left.stays
            neighbours.end(one, stays=stays)
        neighbours.put()
        return tuple(neighbours.done)


class _Neighbours:
    """Neighbours that are to become one segment, and what is left of them."""

    def __init__(self, root: KlogRoot, segments: EntryRows, place: Place) -> None:
        self._root, self._segments, self._place = root, segments, place
        self._group: Group | None = None
        self._spool = ReverseSpool(HELD_BYTES)
        self.done: list[Rewritten] = []

    def make_room(self, one: Group) -> None:
        """Put what there is, if a segment before it does not fit with it."""
        if self._group is not None and not one.joined(self._group).fits(self._place.limits):
            self.put()
        self._spool.mark()

    def add(self, runs: Sequence[Run], entry: Entry) -> None:
        """Take a block of a segment, which lies before those taken so far."""
        self._spool.add([run.stamped() for run in runs] if entry["offset_shift"] else runs)

    def end(self, one: Group, *, stays: bool) -> None:
        """Join a segment that is taken; one that stays is left out and parts its neighbours."""
        if stays:
            self._spool.drop()
            self.put()
        else:
            self._group = one if self._group is None else one.joined(self._group)

    def put(self) -> None:
        """Write them, if there are any."""
        if self._group is not None:
            some = self._segments.part(self._group.begin, self._group.end)
            self.done.append(self._place.put(self._root, some, self._spool.drain()))
            self._group = None

    def close(self) -> None:
        """Give up what was not written."""
        self._spool.close()
