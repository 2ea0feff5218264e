"""Which records of a partition a cleaning retains by their keys.

The rule is Kafka's (docs/format.md, 20; `Cleaner.buildOffsetMap`, `shouldRetainRecord`): the dirty
part of the log, which was not cleaned before, has for each key its last record. Records of aborted
transactions do not count, and a record without a key is never retained. Of the dirty part, exactly
the last records are retained. Of the clean part, the records whose keys the dirty part does not
have are retained. When a tombstone goes, `tombstone_retention` says.

Segments are scanned in order, the dirty ones first, once for each range of keys. A segment that is
dirty and clean is scanned twice, and the union of both bitmaps counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.offset_map import ABSENT, KeyRange, OffsetMap
from klog.logformat.cleaning.record_keys import KeyDecoder, RecordKeys, decode_keys
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap, pack_tombstones

OffsetMapFactory: TypeAlias = Callable[[int, KeyRange | None], OffsetMap | CompiledOffsetMap]
"""Makes a map of at most so many bytes, for a range of keys."""
_NO_ORDINALS: Longs = np.empty(0, np.int64)


class KeyScan:
    """One scan of a partition for one range of keys: the dirty segments, then the clean ones.

    Records of the dirty part are numbered: the offset map holds the ordinal of a key's last record.
    """

    def __init__(
        self,
        seed: Seed,
        max_bytes: int,
        keys: KeyRange | None = None,
        decode: KeyDecoder = decode_keys,
        make_map: OffsetMapFactory = OffsetMap,
    ) -> None:
        """Start before the first segment.

        Args:
            seed: Of the keys' hashes.
            max_bytes: What the offset map may take.
            keys: The range of keys, all if None.
            decode: Returns the keys of batches.
            make_map: Makes the offset map.

        Raises:
            ValueError: If `max_bytes` is too small for a map.
        """
        self._seed, self._decode = seed, decode
        self._map = make_map(max_bytes, keys)
        self._next_ordinal = 0
        self._dirty: list[_SegmentBits] = []
        self._clean: list[_SegmentBits] = []

    @property
    def keys(self) -> KeyRange:
        """Return the keys that the scan covers, fewer than its range if memory was full."""
        return self._map.keys

    def start_dirty_segment(self) -> None:
        """Start the next segment of the dirty part."""
        _pack_last(self._dirty)
        self._dirty.append(_SegmentBits(self._next_ordinal))

    def add_dirty(self, data: bytes, batches: v2.Batches, aborted: Mask, dirty_from: int) -> None:
        """Add batches to the dirty segment.

        Args:
            data: The bytes that `batches` lie in.
            batches: The next batches.
            aborted: Which of them are data of aborted transactions.
            dirty_from: The offset at which the dirty part starts; records below it are clean.

        Raises:
            CorruptRecordError: With the position in `data`.
        """
        segment = self._dirty[-1]
        segment.check_plain(batches)
        for keys, is_candidate in self._candidate_keys(data, batches, aborted):
            is_dirty = is_candidate & (keys.offsets >= dirty_from)
            ordinals = np.arange(self._next_ordinal, self._next_ordinal + len(is_dirty))
            self._map.put(keys.first[is_dirty], keys.second[is_dirty], ordinals[is_dirty])
            segment.add(None, keys.tombstones)
            self._next_ordinal += len(is_dirty)

    def start_clean_segment(self) -> None:
        """Start the next segment of the clean part; the dirty part must be complete."""
        _pack_last(self._clean)
        self._clean.append(_SegmentBits(0))

    def add_clean(self, data: bytes, batches: v2.Batches, aborted: Mask, dirty_from: int) -> None:
        """Add batches to the clean segment, whose dirty records are not retained here.

        Args:
            data: As for `add_dirty`.
            batches: As for `add_dirty`.
            aborted: As for `add_dirty`.
            dirty_from: As for `add_dirty`.

        Raises:
            CorruptRecordError: With the position in `data`.
        """
        segment = self._clean[-1]
        segment.check_plain(batches)
        for keys, is_candidate in self._candidate_keys(data, batches, aborted):
            retained = is_candidate & (self._map.find(keys.first, keys.second) == ABSENT)
            retained &= keys.offsets < dirty_from
            in_range = self._map.keys.contains(keys.first)
            if in_range is not None:
                retained &= in_range
            segment.add(retained, keys.tombstones)

    def bitmaps(self) -> tuple[list[RetainedBitmap], list[RetainedBitmap]]:
        """Return the bitmaps of the dirty segments and of the clean ones, in order."""
        # A map that `NewestFirstCleaner` filled has no ordinals; then no segment is dirty here.
        ordinals = self._map.ordinals() if self._dirty else _NO_ORDINALS
        return (
            [segment.dirty_bitmap(ordinals) for segment in self._dirty],
            [segment.bitmap() for segment in self._clean],
        )

    def _candidate_keys(
        self, data: bytes, batches: v2.Batches, aborted: Mask
    ) -> Iterator[tuple[RecordKeys, Mask]]:
        """Yield the keys of data batches, in parts, and which may be retained."""
        is_data = ~batches.is_control
        data_batches, is_aborted = batches.where(is_data), aborted[is_data]
        for keys in self._decode(data, data_batches, self._seed):
            yield keys, retention_candidates(keys, data_batches, is_aborted)


def retention_candidates(keys: RecordKeys, batches: v2.Batches, is_aborted: Mask) -> Mask:
    """Return which records have a key and are not of an aborted transaction.

    Args:
        keys: Of some records.
        batches: The data batches that they are of, and others.
        is_aborted: Which of the batches are of an aborted transaction.
    """
    if not is_aborted.any():
        return keys.has_key
    numbers = np.searchsorted(batches.next_offsets, keys.offsets, "right")
    is_candidate: Mask = keys.has_key & ~is_aborted[numbers]
    return is_candidate


class _SegmentBits:
    """The bits of one segment while it is scanned; packed when it ends, as they take 8 times less.

    `start` is the ordinal of its first record, in the dirty part.
    """

    def __init__(self, start: int) -> None:
        self.start, self._count, self._is_plain = start, 0, True
        self._retained: list[Mask] = []
        self._tombstones: list[Mask] = []
        self._packed_retained = self._packed_tombstones = b""

    def check_plain(self, batches: v2.Batches) -> None:
        """Look for batches that are retained by other rules than their records."""
        is_plain = ~batches.is_control & (batches.headers["count"] != 0)
        self._is_plain = self._is_plain and bool(is_plain.all())

    def add(self, retained: Mask | None, tombstones: Mask) -> None:
        """Add the bits of the next records; None for `retained` if that is not known yet."""
        if retained is not None:
            self._retained.append(retained)
        self._tombstones.append(tombstones)
        self._count += len(tombstones)

    def pack(self) -> None:
        """Pack the bits; a dirty segment has only those of tombstones until its scan has ended."""
        if self._retained:
            self._packed_retained = np.packbits(np.concatenate(self._retained)).tobytes()
        if self._tombstones:
            self._packed_tombstones = pack_tombstones(np.concatenate(self._tombstones))
        self._retained, self._tombstones = [], []

    def bitmap(self) -> RetainedBitmap:
        """Return the bitmap of a clean segment."""
        self.pack()
        return self._bitmap_of(self._packed_retained)

    def dirty_bitmap(self, ordinals: Longs) -> RetainedBitmap:
        """Return the bitmap of a dirty segment, from the ordinals of all keys' last records."""
        self.pack()
        retained = np.zeros(self._count, np.bool_)
        low, high = np.searchsorted(ordinals, (self.start, self.start + self._count))
        retained[ordinals[low:high] - self.start] = True
        return self._bitmap_of(np.packbits(retained).tobytes())

    def _bitmap_of(self, retained: bytes) -> RetainedBitmap:
        tombstones = self._packed_tombstones
        return RetainedBitmap(self._count, retained, tombstones, self._is_plain and not tombstones)


def _pack_last(segments: Sequence[_SegmentBits]) -> None:
    if segments:
        segments[-1].pack()
