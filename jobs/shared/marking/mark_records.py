"""Mark which records of a partition a cleaning keeps: read all keys, keep the last record of each.

The rule: a task marks as many keys as fit its memory. The other keys are marked range by range,
each by reading all keys again. The dirty part is read first, then the clean part is compared with
it. Tombstones, markers and the last batches of producers do not depend on keys: they come with the
first keys.

`compact` marks a partition with `mark_records`, and what it left with `mark_key_range`. `verify`
marks all keys of a compacted part with `mark_key_range`: what that does not retain is wrong there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking.cleaning_reader import (
    CleaningReader,
    read_last_batches,
    read_transactions,
)
from klog.jobs.shared.marking.cleaning_workload import get_cleaning_kernels, key_decoder
from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.offset_map import KeyRange, OffsetMap
from klog.logformat.cleaning.producer_last_batches import ProducerLastBatches
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from klog.logformat.cleaning.retained_records import KeyScan, OffsetMapFactory
from klog.logformat.compiled.kernel_types import CleaningKernels


@dataclass(frozen=True, slots=True)
class MarkTask:
    """A partition to be marked.

    Attributes:
        root: The klog root.
        storage: The options of its store.
        segments: The segments to be marked.
        later_segments: The segments after them.
        first_dirty_offset: The offset below which the partition was cleaned before.
        now_ms: The time of the cleaning.
        seed: The seed of the hash of keys.
        map_bytes: The memory of the map of keys.
        keys: The range of key hashes to be marked.
        remaining_records: How much work the process that runs the task still has, in records.
    """

    root: str
    storage: StorageOptions
    segments: EntryRows
    later_segments: EntryRows
    first_dirty_offset: int
    now_ms: int
    seed: Seed
    map_bytes: int
    keys: KeyRange = field(default_factory=KeyRange)
    remaining_records: int = 0


@dataclass(frozen=True, slots=True)
class KeyRangeMarks:
    """Which records a range of keys keeps: a bitmap for each segment, without tombstones."""

    bitmaps: tuple[RetainedBitmap, ...]


@dataclass(frozen=True, slots=True)
class PartitionMarks:
    """Which records of a partition stay: a bitmap for each segment.

    Attributes:
        bitmaps: The retained records and the tombstones of each segment.
        keys: The range of key hashes that the bitmaps are about.
        last_batches: The last offsets of the batches that stay even empty, because a producer is
            known by them; ascending.
        removable_markers: The offsets of markers whose transactions have no record left; ascending.
    """

    bitmaps: tuple[RetainedBitmap, ...]
    keys: KeyRange
    last_batches: Longs
    removable_markers: Longs

    @property
    def has_all_keys(self) -> bool:
        """Return whether the bitmaps are about all keys from the first on."""
        return self.keys.end >= KeyRange().end

    def joined(self, ranges: Iterable[KeyRangeMarks]) -> PartitionMarks:
        """Return the marks with those of the other ranges of keys: any of them keeps a record.

        Args:
            ranges: The marks of the other ranges of keys.
        """
        bitmaps = self.bitmaps
        for marks in ranges:
            bitmaps = _joined(bitmaps, marks.bitmaps)
        return replace(self, bitmaps=bitmaps)


def mark_records(task: MarkTask, kernels: CleaningKernels | None) -> PartitionMarks:
    """Read a partition's keys, and mark for as many keys as fit memory, one at least.

    Args:
        task: The partition; its range of keys begins with the first key.
        kernels: The compiled kernels, if they are used.

    Raises:
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    root = open_klog_root(task.root, task.storage)
    transactions = read_transactions(root, task.segments, task.later_segments)
    reader = CleaningReader(root, transactions.outcomes(), task.first_dirty_offset)
    dirty_batches, clean_batches = ProducerLastBatches(), ProducerLastBatches()
    scan = _PartitionScan(reader, task, kernels)
    bitmaps, keys = scan.mark(task.keys, dirty_batches.add, clean_batches.add)
    last_batches = read_last_batches(root, task.later_segments)
    last_batches.prepend(dirty_batches)
    last_batches.prepend(clean_batches)
    return PartitionMarks(
        bitmaps, keys, last_batches.last_offsets(task.now_ms), transactions.removable_markers()
    )


def mark_key_range(task: MarkTask) -> KeyRangeMarks:
    """Read a partition's keys and mark for all keys of a range, in as many passes as needed.

    Args:
        task: The partition and the range of keys.

    Raises:
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    kernels = get_cleaning_kernels(task.segments, task.remaining_records)
    root = open_klog_root(task.root, task.storage)
    transactions = read_transactions(root, task.segments, task.later_segments)
    reader = CleaningReader(root, transactions.outcomes(), task.first_dirty_offset)
    scan = _PartitionScan(reader, task, kernels)
    bitmaps, keys = scan.mark(task.keys)
    while keys.end < task.keys.end:
        more, keys = scan.mark(KeyRange(keys.end, task.keys.end))
        bitmaps = _joined(bitmaps, more)
    return KeyRangeMarks(tuple(replace(bitmap, tombstones=b"") for bitmap in bitmaps))


def split_clean_and_dirty(task: MarkTask) -> tuple[EntryRows, EntryRows]:
    """Return the segments that were cleaned before, and those that are dirty at least in part.

    Args:
        task: The partition.
    """
    segments = task.segments
    next_offsets = segments.numbers("next_offset")
    first_dirty = int(np.searchsorted(next_offsets, task.first_dirty_offset, "right"))
    return segments.part(0, first_dirty), segments.part(first_dirty, len(segments))


class _PartitionScan:
    """Marks a partition, for one range of keys after the other."""

    def __init__(
        self, reader: CleaningReader, task: MarkTask, kernels: CleaningKernels | None
    ) -> None:
        self._reader, self._task, self._kernels = reader, task, kernels
        self._clean, self._dirty = split_clean_and_dirty(task)
        # The first records of the first dirty segment may have been cleaned before.
        self._is_split = bool(
            len(self._dirty) and self._dirty[0]["base_offset"] < task.first_dirty_offset
        )
        if self._is_split:
            self._clean = task.segments.part(0, len(self._clean) + 1)

    def mark(
        self,
        keys: KeyRange,
        add_dirty_headers: Callable[[v2.Batches], None] | None = None,
        add_clean_headers: Callable[[v2.Batches], None] | None = None,
    ) -> tuple[tuple[RetainedBitmap, ...], KeyRange]:
        """Return a bitmap for each segment, and the keys that they are about."""
        scan = self._key_scan(keys)
        self._reader.read(self._dirty, scan.start_dirty_segment, scan.add_dirty, add_dirty_headers)
        self._reader.read(self._clean, scan.start_clean_segment, scan.add_clean, add_clean_headers)
        dirty, clean = scan.bitmaps()
        if self._is_split:
            dirty[0] = dirty[0].union(clean.pop())
        return (*clean, *dirty), scan.keys

    def _key_scan(self, keys: KeyRange) -> KeyScan:
        seed, map_bytes, kernels = self._task.seed, self._task.map_bytes, self._kernels
        make_map: OffsetMapFactory = (
            OffsetMap if kernels is None else partial(CompiledOffsetMap, kernels.tables)
        )
        return KeyScan(seed, map_bytes, keys, key_decoder(kernels), make_map)


def _joined(
    bitmaps: Iterable[RetainedBitmap], range_bitmaps: Iterable[RetainedBitmap]
) -> tuple[RetainedBitmap, ...]:
    pairs = zip(bitmaps, range_bitmaps, strict=True)
    return tuple(bitmap.union(range_bitmap) for bitmap, range_bitmap in pairs)
