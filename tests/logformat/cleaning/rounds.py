"""A cleaning of a partition in memory: klog's pure functions, in the order of its job.

The rule: a segment is the bytes of its batches, offsets as in the log. What is cleaned is the first
so many segments; those behind are only looked at. A map of keys that gives some up is followed by
one for those. It is done three times, by Arrow's columns, by what numba compiled, and by that in
one pass from the end: all leave the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.keys import ReadKeys, read_keys, read_keys_by
from klog.logformat.cleaning.last_batches import LastBatches
from klog.logformat.cleaning.marks import MakeMap, Marking, SegmentMarks
from klog.logformat.cleaning.newest_first import MapFullError, NewestFirst
from klog.logformat.cleaning.offset_map import ALL_KEYS, KeyRange, OffsetMap
from klog.logformat.cleaning.rewrite import Fates, Rewrite
from klog.logformat.cleaning.spent import Transactions
from klog.logformat.cleaning.thinned import Thin, thin_by
from klog.logformat.compiled import loops, tables
from klog.logformat.compiled.compiling import Loops
from klog.logformat.restamp import Run

SEED = Seed(17, 4)
NEVER = 1 << 60
MAP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Way:
    """How keys are read and held, and what is left is made."""

    read: ReadKeys
    make_map: MakeMap
    thin: Thin | None


COLUMNS = Way(read_keys, OffsetMap, None)
COMPILED = Way(read_keys_by(loops), partial(HashedMap, tables), thin_by(loops))


@dataclass(frozen=True, slots=True)
class Round:
    """When a cleaning takes place, and what it goes by; times in ms.

    `count` is how many segments it cleans, all if None; `dirty_from` is an offset.
    """

    dirty_from: int = 0
    count: int | None = None
    now_ms: int = 0
    retention_ms: int = 0
    expiration_ms: int = NEVER
    map_bytes: int = MAP_BYTES


def scan(data: bytes) -> v2.Batches:
    batches = v2.scan(data, 0, len(data))
    v2.check_crcs(data, batches)
    return batches


def next_offset(segment: bytes, otherwise: int = 0) -> int:
    batches = scan(segment)
    return int(batches.next_offsets[-1]) if len(batches) else otherwise


def cleaned(segments: Sequence[bytes], one: Round | None = None) -> list[bytes]:
    """Give all segments as a cleaning leaves them: as many, some of them empty."""
    one = one or Round()
    ways = [runs_of(segments, one, way) for way in (COLUMNS, COMPILED)]
    found, compiled = ([b"".join(run.data for run in runs) for runs in way] for way in ways)
    assert compiled == found
    with suppress(MapFullError):
        assert at_once(segments, one) == found
    return found


def at_once(segments: Sequence[bytes], one: Round) -> list[bytes]:
    """Give what is left of each segment by one pass over what is dirty, from its end."""
    count = len(segments) if one.count is None else one.count
    some, behind = segments[:count], segments[count:]
    transactions, fates = _known(some, behind, one)
    decisions, found = transactions.decisions(), HashedMap(tables, one.map_bytes)
    newest = NewestFirst(Loops(loops, tables), SEED, found, one.dirty_from)
    first_dirty = bisect_right(_nexts(some), one.dirty_from)
    dirty: list[bytes] = []
    for segment in reversed(some[first_dirty:]):
        batches = scan(segment)
        blocks = list(newest.clean(segment, batches, decisions.aborted(batches, {}), fates))
        left = b"".join(run.data for block in reversed(blocks) for run in block.runs)
        assert all(block.stays for block in blocks) == (left == segment)
        dirty.append(left)
    marking = Marking(SEED, one.map_bytes, None, COMPILED.read, lambda *_: found)
    clean = []
    for segment in some[:first_dirty]:
        batches = scan(segment)
        marking.begin_clean()
        marking.add_clean(segment, batches, decisions.aborted(batches, {}), one.dirty_from)
    for segment, marks in zip(some, marking.marks()[1], strict=False):
        runs = Rewrite(marks, fates, COMPILED.thin).clean(segment, scan(segment))
        clean.append(b"".join(run.data for run in runs))
    return [*clean, *reversed(dirty), *behind]


def runs_of(segments: Sequence[bytes], one: Round, way: Way = COLUMNS) -> list[list[Run]]:
    """Give what a cleaning leaves of each segment, in the pieces in which it comes."""
    count = len(segments) if one.count is None else one.count
    some, behind = segments[:count], segments[count:]
    marks, fates = marked(some, behind, one, way)
    left = []
    for segment, own in zip(some, marks, strict=True):
        rewrite = Rewrite(own, fates, way.thin)
        left.append(list(rewrite.clean(segment, scan(segment))))
        rewrite.close()
    return left + [[Run(segment, scan(segment))] for segment in behind]


def marked(
    segments: Sequence[bytes], behind: Sequence[bytes], one: Round, way: Way = COLUMNS
) -> tuple[list[SegmentMarks], Fates]:
    """Give the marks of each segment and what else a rewriting has to know."""
    transactions, fates = _known(segments, behind, one)
    marks, begin = _for_keys(segments, transactions, one, KeyRange(), way)
    while begin < ALL_KEYS[1]:
        keys = KeyRange(begin, ALL_KEYS[1])
        more, begin = _for_keys(segments, transactions, one, keys, way)
        marks = [mine.joined(theirs) for mine, theirs in zip(marks, more, strict=True)]
    return marks, fates


def _known(
    segments: Sequence[bytes], behind: Sequence[bytes], one: Round
) -> tuple[Transactions, Fates]:
    """Meet transactions and producers; gives what of these a rewriting has to know."""
    transactions, lasts = Transactions(), LastBatches()
    for segment in (*segments, *behind):
        lasts.add(scan(segment))
        transactions.add(segment, scan(segment))
    end = max([one.dirty_from, *map(next_offset, segments)])
    kept_empty = np.union1d(lasts.kept(one.now_ms, one.expiration_ms), [end - 1])
    horizon_ms = one.now_ms + one.retention_ms
    fates = Fates(one.now_ms, horizon_ms, kept_empty, transactions.spent_markers())
    return transactions, fates


def _nexts(segments: Sequence[bytes]) -> list[int]:
    nexts: list[int] = []
    for segment in segments:
        nexts.append(next_offset(segment, nexts[-1] if nexts else 0))
    return nexts


def _for_keys(
    segments: Sequence[bytes], transactions: Transactions, one: Round, keys: KeyRange, way: Way
) -> tuple[list[SegmentMarks], int]:
    """Mark for one range of keys; gives the marks and where the keys end that were known."""
    marking = Marking(SEED, one.map_bytes, keys, way.read, way.make_map)
    first_dirty = bisect_right(_nexts(segments), one.dirty_from)
    decisions = transactions.decisions()
    for segment in segments[first_dirty:]:
        marking.begin_dirty()
        batches = scan(segment)
        marking.add_dirty(segment, batches, decisions.aborted(batches, {}), one.dirty_from)
    clean = segments[: first_dirty + 1]
    for segment in clean:
        marking.begin_clean()
        batches = scan(segment)
        marking.add_clean(segment, batches, decisions.aborted(batches, {}), one.dirty_from)
    of_dirty, of_clean = marking.marks()
    if len(clean) > first_dirty:
        of_dirty[0] = of_dirty[0].joined(of_clean.pop())
    return [*of_clean, *of_dirty], marking.keys.end
