"""Whether each key is there once in what was compacted.

The rule: what a compaction of the compacted part alone would take out should not be there. It is
asked of the compaction's own marks. The first few such records are told with their places, the
others counted. Damage is told elsewhere, and says nothing of keys; where the store does not give
the files, it is not known whether their keys are there once, which is told. What lies below the log
start no reader sees, and no compaction either.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from klog.connector.log.entries import Entry
from klog.connector.log.root import KlogRoot
from klog.connector.store.storage import Storage
from klog.errors import CorruptRecordError, KlogError, UnsupportedFormatError
from klog.jobs.choosing import open_root
from klog.jobs.compacting.marking import MAP_BYTES, MarkTask, mark_all
from klog.jobs.entry_rows import EntryRows
from klog.jobs.segments import read_segment
from klog.jobs.verifying.findings import Finding
from klog.logformat import batch as v2
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.marks import SegmentMarks
from klog.logformat.columnar import decode_parts
from klog.logformat.index import Mask
from klog.logformat.transactions import is_control

MOST_TOLD = 10
_DAMAGE = (CorruptRecordError, UnsupportedFormatError)


@dataclass(frozen=True, slots=True)
class UniqueTask:
    """The segments of a partition that were compacted, all of them, and where its log starts."""

    root: str
    storage: Storage
    topic: str
    partition: int
    segments: EntryRows
    log_start: int


def superseded(task: UniqueTask) -> list[Finding]:
    """Find the records without a key, and those whose key a later record has.

    None where a segment is damaged: that is told by who verifies it. What the store raises besides
    is raised.
    """
    root = open_root(task.root, task.storage)
    seed = Seed(secrets.randbits(64), secrets.randbits(64))
    entry, nothing = task.segments[0], task.segments.part(0, 0)
    first = max(entry["base_offset"], task.log_start)
    marking = MarkTask(task.root, task.storage, task.segments, nothing, first, 0, seed, MAP_BYTES)
    try:
        marks = mark_all(marking).marks
        if entry["base_offset"] < first:
            marks = (_seen_from(root, entry, marks[0], first), *marks[1:])
    except _DAMAGE:
        return []
    count = sum(one.count - one.kept_count for one in marks)
    found: list[Finding] = []
    with suppress(*_DAMAGE):  # Since it was marked; what is found by now stays found.
        for one in islice(_each(root, task, marks), min(count, MOST_TOLD)):
            found.append(one)  # noqa: PERF402 - one by one, as the next may raise
    return [*found, *_more(task, count - len(found))]


def unknown(task: UniqueTask, error: KlogError | OSError) -> Finding:
    """Tell that the store did not give what the keys are in."""
    end = task.segments[-1]["next_offset"]
    what = f"whether each key is there once below offset {end} is not known: {error}"
    return Finding(task.topic, task.partition, None, "unreadable", what)


def _each(root: KlogRoot, task: UniqueTask, marks: Iterable[SegmentMarks]) -> Iterator[Finding]:
    end = task.segments[-1]["next_offset"]
    for entry, one in zip(task.segments, marks, strict=True):
        for offset, has_key in _places(root, entry, one):
            why = "its key comes again" if has_key else "it has no key"
            what = f"a record below offset {end}, up to which it was compacted: {why}"
            yield Finding(task.topic, task.partition, entry["file"], "key", what, offset=offset)


def _seen_from(root: KlogRoot, entry: Entry, marks: SegmentMarks, first: int) -> SegmentMarks:
    """Mark all records below an offset as kept."""
    kept, _ = marks.masks()
    below = 0

    def take(data: bytes, batches: v2.Batches) -> None:
        nonlocal below
        for part in decode_parts(data, batches.where(~is_control(batches)), ()):
            below += int((part.offset < first).sum())

    read_segment(root, entry, take)
    kept[:below] = True
    return replace(marks, kept=np.packbits(kept).tobytes())


def _places(root: KlogRoot, entry: Entry, marks: SegmentMarks) -> Iterator[tuple[int, bool]]:
    """Give of the records of a segment that are not kept the offset, and whether it has a key."""
    if marks.kept_count == marks.count:
        return
    kept, _ = marks.masks()
    row = 0
    found: list[tuple[int, bool]] = []

    def take(data: bytes, batches: v2.Batches) -> None:
        nonlocal row
        for part in decode_parts(data, batches.where(~is_control(batches)), ("key",)):
            assert part.key is not None
            gone: Mask = ~kept[row : row + len(part.offset)]
            row += len(gone)
            has_key = part.key.is_valid().to_numpy(zero_copy_only=False)
            some = np.flatnonzero(gone)[:MOST_TOLD]
            found.extend(zip(part.offset[some].tolist(), has_key[some].tolist(), strict=True))

    read_segment(root, entry, take)
    yield from found


def _more(task: UniqueTask, count: int) -> Iterator[Finding]:
    if count:
        yield Finding(task.topic, task.partition, None, "key", f"and {count:,} more such records")
