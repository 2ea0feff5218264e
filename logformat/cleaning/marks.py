"""Which records of a partition a cleaning keeps: a bit for each, in the order of the log.

The rule is Kafka's (docs/format.md, 20; `Cleaner.buildOffsetMap`, `shouldRetainRecord`). What was
not cleaned before, the dirty part, says which record is each key's last; of an aborted transaction
none counts, and a record without a key is never kept. Of the dirty part exactly those last ones
stay; of the part that was cleaned before, what no key of the dirty part replaces. A record whose
value is null is a tombstone: it has a bit of its own, for when it may go is not said by its key.

Segments are given in order, the dirty ones first, once for each range of keys; one that is both
comes twice. What either pass keeps is kept. Control batches have records too, but no bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.keys import KeyRows, ReadKeys, read_keys
from klog.logformat.cleaning.offset_map import ABSENT, KeyRange, OffsetMap
from klog.logformat.index import Longs, Mask
from klog.logformat.transactions import is_control

_NO_PLACES: Longs = np.empty(0, np.int64)
MakeMap = Callable[[int, KeyRange | None], OffsetMap | HashedMap]


@dataclass(frozen=True, slots=True)
class SegmentMarks:
    """Of one segment's records, as packed bits, which are kept and which are tombstones.

    `tombstones` is empty where there is none. `is_plain` says that the segment has neither
    tombstones nor control batches nor batches without records: what becomes of it, `kept` says.
    """

    count: int
    kept: bytes
    tombstones: bytes = b""
    is_plain: bool = True

    @property
    def kept_count(self) -> int:
        """Give how many records are kept."""
        return int(np.unpackbits(np.frombuffer(self.kept, np.uint8)).sum())

    def joined(self, other: SegmentMarks) -> SegmentMarks:
        """Keep what either keeps: they are of one segment, for two ranges of keys or two parts."""
        mine, theirs = (np.frombuffer(one.kept, np.uint8) for one in (self, other))
        return replace(self, kept=(mine | theirs).tobytes())

    def masks(self) -> tuple[Mask, Mask]:
        """Give both as a truth value a record."""
        kept = _unpacked(self.kept, self.count)
        if not self.tombstones:
            return kept, np.zeros(self.count, np.bool_)
        return kept, _unpacked(self.tombstones, self.count)


class _Segment:
    """One segment in the making: where its records begin, and their bits, packed when it ends."""

    def __init__(self, begin: int) -> None:
        self.begin, self.count, self.is_plain = begin, 0, True
        self._kept: list[Mask] = []
        self._tombstones: list[Mask] = []
        self._packed: SegmentMarks | None = None

    def look(self, batches: v2.Batches) -> None:
        """Look for batches that stay or go by other rules than their records."""
        plain = ~is_control(batches) & (batches.headers["count"] != 0)
        self.is_plain = self.is_plain and bool(plain.all())

    def add(self, kept: Mask | None, tombstones: Mask) -> None:
        """Take the bits of more records; without `kept` it is not known yet."""
        if kept is not None:
            self._kept.append(kept)
        self._tombstones.append(tombstones)
        self.count += len(tombstones)

    def close(self) -> None:
        """Pack the bits: a byte a record is only held of the segment that is read."""
        if self._packed is None:
            kept = np.concatenate(self._kept) if self._kept else np.zeros(0, np.bool_)
            tombstones = np.concatenate(self._tombstones or [kept])
            packed = np.packbits(tombstones).tobytes() if tombstones.any() else b""
            self._packed = SegmentMarks(
                self.count, np.packbits(kept).tobytes(), packed, self.is_plain and not packed
            )
            self._kept, self._tombstones = [], []

    def marks(self) -> SegmentMarks:
        """Give the marks of a segment of the clean part."""
        self.close()
        assert self._packed is not None
        return self._packed

    def dirty_marks(self, last_places: Longs) -> SegmentMarks:
        """Give the marks of one of the dirty part, by the last places of all keys."""
        kept = np.zeros(self.count, np.bool_)
        low, high = np.searchsorted(last_places, (self.begin, self.begin + self.count))
        kept[last_places[low:high] - self.begin] = True
        return replace(self.marks(), kept=np.packbits(kept).tobytes())


class Marking:
    """One pass over a partition for one range of keys: the dirty part, then the clean one."""

    def __init__(
        self,
        seed: Seed,
        most_bytes: int,
        keys: KeyRange | None = None,
        read: ReadKeys = read_keys,
        make_map: MakeMap = OffsetMap,
    ) -> None:
        """Begin; raises as `OffsetMap`."""
        self._seed, self._read = seed, read
        self._map = make_map(most_bytes, keys)
        self._place = 0
        self._dirty: list[_Segment] = []
        self._clean: list[_Segment] = []

    @property
    def keys(self) -> KeyRange:
        """Give the keys that this pass knows of; fewer than it was asked for if memory was full."""
        return self._map.keys

    def begin_dirty(self) -> None:
        """Begin the next segment of the dirty part."""
        _close_last(self._dirty)
        self._dirty.append(_Segment(self._place))

    def add_dirty(self, data: bytes, batches: v2.Batches, aborted: Mask, dirty_from: int) -> None:
        """Take more batches of it; what lies below `dirty_from` is of the clean part.

        `aborted` says of each batch whether it is data of an aborted transaction. Raises
        `CorruptRecordError` with the position in `data`.
        """
        segment = self._dirty[-1]
        segment.look(batches)
        for rows, counts in self._rows(data, batches, aborted):
            counts = counts & (rows.offsets >= dirty_from)
            places = np.arange(self._place, self._place + len(counts))
            self._map.put(rows.first[counts], rows.second[counts], places[counts])
            segment.add(None, rows.tombstones)
            self._place += len(counts)

    def begin_clean(self) -> None:
        """Begin the next segment of the clean part; no more of the dirty one may come."""
        _close_last(self._clean)
        self._clean.append(_Segment(0))

    def add_clean(self, data: bytes, batches: v2.Batches, aborted: Mask, dirty_from: int) -> None:
        """Take more batches of it, as `add_dirty` does; what is dirty is not kept here."""
        segment = self._clean[-1]
        segment.look(batches)
        for rows, counts in self._rows(data, batches, aborted):
            kept = counts & (self._map.find(rows.first, rows.second) == ABSENT)
            kept &= rows.offsets < dirty_from
            inside = self._map.keys.holds(rows.first)
            if inside is not None:
                kept &= inside
            segment.add(kept, rows.tombstones)

    def marks(self) -> tuple[list[SegmentMarks], list[SegmentMarks]]:
        """Give the marks of the dirty segments and of the clean ones, as they came."""
        # Of a dirty part that was cleaned at once the map knows keys, and no places.
        places = self._map.places() if self._dirty else _NO_PLACES
        return (
            [one.dirty_marks(places) for one in self._dirty],
            [one.marks() for one in self._clean],
        )

    def _rows(
        self, data: bytes, batches: v2.Batches, aborted: Mask
    ) -> Iterator[tuple[KeyRows, Mask]]:
        """Read the keys of data batches, in parts; those count that are there and not aborted."""
        is_data = ~is_control(batches)
        own, is_aborted = batches.where(is_data), aborted[is_data]
        for rows in self._read(data, own, self._seed):
            yield rows, those_that_count(rows, own, is_aborted)


def those_that_count(rows: KeyRows, batches: v2.Batches, is_aborted: Mask) -> Mask:
    """Tell which records of batches have a key, and are of no aborted transaction."""
    if not is_aborted.any():
        return rows.has_key
    numbers = np.searchsorted(batches.next_offsets, rows.offsets, "right")
    found: Mask = rows.has_key & ~is_aborted[numbers]
    return found


def _close_last(segments: Sequence[_Segment]) -> None:
    if segments:
        segments[-1].close()


def _unpacked(bits: bytes, count: int) -> Mask:
    found: Mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=count).view(np.bool_)
    return found
