"""The dirty part of a partition, cleaned and written in one pass from its end.

The rule: a record is its key's last one if no key behind it is the same, so that nothing has to be
read twice (`logformat/cleaning/newest_first.py`). What is left waits until it is as much as one
segment may hold, or until there is a segment that stays as it is, and is put. What is clean is
marked against the keys of what is dirty, as `marking.py` does it.

It takes compiled loops, and memory for all keys of the dirty part. Where they are more, what was
written is garbage that no commit names, and the whole partition is marked.
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
from klog.jobs.compacting.rewriting import Place, Rewritten
from klog.jobs.compacting.spool import Spool
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
from klog.logformat.compiled.compiling import Loops, loops
from klog.logformat.index import Longs
from klog.logformat.restamp import Run, moved


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
    found = loops() if task.marking.compiles else None
    if found is not None:
        with suppress(MapFullError):
            return _cleaned(task, found)
    return mark(task.marking)


def _cleaned(task: CleanTask, found: Loops) -> Marked:
    own = task.marking
    root = open_root(own.root, own.storage)
    clean, dirty = clean_and_dirty(own)
    lasts = LastBatches()
    met = transactions(root, own.segments, own.behind, meet=lasts.add)
    reading = Reading(root, met.decisions(), own.dirty_from)
    producers = _Producers(root, task, lasts)
    keys = HashedMap(found.tables, own.memory_bytes)
    newest = NewestFirst(found, own.seed, keys, own.dirty_from)
    fates = Fates(own.now_ms, task.horizon_ms, spent_markers=met.spent_markers())

    def blocks(entry: Entry) -> Iterator[Left]:
        for chunk in whole_segment_backwards(root, entry):
            with in_segment(root, entry, chunk.position):
                batches = moved(chunk.batches, entry["offset_shift"])
                aborted = reading.aborted(entry, batches)
                known = replace(fates, kept_empty=producers.kept_empty(batches))
                yield from newest.clean(chunk.data, batches, aborted, known)

    rewritten = _written(root, dirty, task.place, blocks)
    read = read_keys_by(found.records)
    marking = Marking(own.seed, own.memory_bytes, None, read, lambda *_: keys)
    of_clean = LastBatches()
    reading.give(clean, marking.begin_clean, marking.add_clean, of_clean.add)
    _, marks = marking.marks()
    lasts_left = producers.behind(of_clean)
    return Marked(tuple(marks), KeyRange(), lasts_left, met.spent_markers(), rewritten)


class _Producers:
    """The last batches of producers, as far as they are known from the end of a partition.

    Only a control batch in front of others can change which of those count, and klog writes none:
    if a broker wrote anything, all headers are read before.
    """

    def __init__(self, root: KlogRoot, task: CleanTask, lasts: LastBatches) -> None:
        """Take those of the whole partition, if a broker wrote any of it."""
        own = task.marking
        self._now_ms, self._end = own.now_ms, task.end
        self._are_known = are_a_brokers(own.segments) or are_a_brokers(own.behind)
        self._lasts = lasts if self._are_known else last_batches(root, own.behind)
        self._kept = self._lasts.kept(self._now_ms)

    def kept_empty(self, batches: v2.Batches) -> Longs:
        """Give the last offsets of those that stay even if no record does; all behind were met."""
        kept = self._kept
        if not self._are_known:
            here = LastBatches()
            here.add(batches)
            self._lasts.put_before(here)
            kept = self._lasts.kept(self._now_ms, among=here)
        return np.union1d(kept, [self._end - 1])

    def behind(self, clean: LastBatches) -> Longs:
        """Give the last offsets of all of them, once the clean part is met too."""
        if not self._are_known:
            self._lasts.put_before(clean)
        return self._lasts.kept(self._now_ms)


def _written(
    root: KlogRoot,
    segments: EntryRows,
    place: Place,
    blocks: Callable[[Entry], Iterator[Left]],
) -> tuple[Rewritten, ...]:
    """Put what is left of the segments that lose anything, the last one first."""
    with closing(_Open(root, segments, place)) as neighbours:
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


class _Open:
    """Neighbours that are to become one segment, and what is left of them."""

    def __init__(self, root: KlogRoot, segments: EntryRows, place: Place) -> None:
        self._root, self._segments, self._place = root, segments, place
        self._group: Group | None = None
        self._spool = Spool()
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
