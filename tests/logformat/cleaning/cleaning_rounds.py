"""A cleaning of a partition in memory: klog's pure functions, in the order of its job.

The rule: a segment is the bytes of its batches, with their offsets in the log. The first `count`
segments are cleaned; the others are only read. If an offset map drops keys, another one follows for
these. A partition is cleaned in three ways: by Arrow's columns, by kernels, and by kernels in one
pass from the newest batch. All must give the same bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.clean_newest_first import NewestFirstCleaner, OffsetMapFullError
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.filter_records import RecordFilter, compiled_filter
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.offset_map import ALL_KEYS, KeyRange, OffsetMap
from klog.logformat.cleaning.producer_last_batches import ProducerLastBatches
from klog.logformat.cleaning.record_keys import KeyDecoder, decode_keys
from klog.logformat.cleaning.removable_markers import CleanedTransactionMetadata
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from klog.logformat.cleaning.retained_records import KeyScan, OffsetMapFactory
from klog.logformat.compiled.kernel_types import CleaningKernels
from tests.support.kernels import hash_table_kernels, record_kernels

SEED = Seed(17, 4)
NEVER = 1 << 60
MAP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Engine:
    """How keys are read and mapped, and records are filtered."""

    read: KeyDecoder
    make_map: OffsetMapFactory
    record_filter: RecordFilter | None


COLUMNS = Engine(decode_keys, OffsetMap, None)
COMPILED = Engine(
    partial(decode_keys, kernels=record_kernels),
    partial(CompiledOffsetMap, hash_table_kernels),
    compiled_filter(record_kernels),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One cleaning, times in ms.

    `count` is how many segments it cleans, all if None; `dirty_from` is an offset.
    """

    dirty_from: int = 0
    count: int | None = None
    now_ms: int = 0
    retention_ms: int = 0
    expiration_ms: int = NEVER
    map_bytes: int = MAP_BYTES

    def split(self, segments: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """Return the segments that are cleaned, and those after them."""
        count = len(segments) if self.count is None else self.count
        return segments[:count], segments[count:]


def scan(data: bytes) -> v2.Batches:
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    return batches


def next_offset(segment: bytes, otherwise: int = 0) -> int:
    batches = scan(segment)
    return int(batches.next_offsets[-1]) if len(batches) else otherwise


def cleaned(segments: Sequence[bytes], round_: Round | None = None) -> list[bytes]:
    """Return all segments after a cleaning, as many as before, some of them empty."""
    round_ = round_ or Round()
    by_columns, by_kernels = (
        [b"".join(run.data for run in runs) for runs in runs_of(segments, round_, engine)]
        for engine in (COLUMNS, COMPILED)
    )
    assert by_kernels == by_columns
    with suppress(OffsetMapFullError):
        assert cleaned_newest_first(segments, round_) == by_columns
    return by_columns


def cleaned_newest_first(segments: Sequence[bytes], round_: Round) -> list[bytes]:
    """Return all segments after a cleaning whose dirty part is read once, from its end."""
    own, after = round_.split(segments)
    transactions, context = _context(own, after, round_)
    outcomes = transactions.outcomes()
    offset_map = CompiledOffsetMap(hash_table_kernels, round_.map_bytes)
    kernels = CleaningKernels(record_kernels, hash_table_kernels)
    cleaner = NewestFirstCleaner(kernels, SEED, offset_map, round_.dirty_from)
    first_dirty = bisect_right(_next_offsets(own), round_.dirty_from)
    dirty: list[bytes] = []
    for segment in reversed(own[first_dirty:]):
        batches = scan(segment)
        aborted = outcomes.is_aborted(batches, {})
        blocks = list(cleaner.clean(segment, batches, aborted, context))
        result = b"".join(run.data for block in reversed(blocks) for run in block.runs)
        assert all(block.is_unchanged for block in blocks) == (result == segment)
        dirty.append(result)
    key_scan = KeyScan(SEED, round_.map_bytes, None, COMPILED.read, lambda *_: offset_map)
    for segment in own[:first_dirty]:
        batches = scan(segment)
        key_scan.start_clean_segment()
        aborted = outcomes.is_aborted(batches, {})
        key_scan.add_clean(segment, batches, aborted, round_.dirty_from)
    clean = []
    for segment, bitmap in zip(own, key_scan.bitmaps()[1], strict=False):
        segment_cleaner = SegmentCleaner(bitmap, context, COMPILED.record_filter)
        clean.append(b"".join(run.data for run in segment_cleaner.clean(segment, scan(segment))))
    return [*clean, *reversed(dirty), *after]


def runs_of(
    segments: Sequence[bytes], round_: Round, engine: Engine = COLUMNS
) -> list[list[BatchRun]]:
    """Return what a cleaning retains of each segment, in runs."""
    own, after = round_.split(segments)
    bitmaps, context = marked(own, after, round_, engine)
    runs = []
    for segment, bitmap in zip(own, bitmaps, strict=True):
        cleaner = SegmentCleaner(bitmap, context, engine.record_filter)
        runs.append(list(cleaner.clean(segment, scan(segment))))
        cleaner.close()
    return runs + [[BatchRun(segment, scan(segment))] for segment in after]


def marked(
    segments: Sequence[bytes], after: Sequence[bytes], round_: Round, engine: Engine = COLUMNS
) -> tuple[list[RetainedBitmap], CleaningContext]:
    """Return the bitmap of each segment, and the context of the cleaning."""
    transactions, context = _context(segments, after, round_)
    bitmaps, start = _bitmaps(segments, transactions, round_, KeyRange(), engine)
    while start < ALL_KEYS[1]:
        keys = KeyRange(start, ALL_KEYS[1])
        in_range, start = _bitmaps(segments, transactions, round_, keys, engine)
        pairs = zip(bitmaps, in_range, strict=True)
        bitmaps = [bitmap.union(other) for bitmap, other in pairs]
    return bitmaps, context


def _context(
    segments: Sequence[bytes], after: Sequence[bytes], round_: Round
) -> tuple[CleanedTransactionMetadata, CleaningContext]:
    transactions, last_batches = CleanedTransactionMetadata(), ProducerLastBatches()
    for segment in (*segments, *after):
        last_batches.add(scan(segment))
        transactions.add(segment, scan(segment))
    end = max([round_.dirty_from, *map(next_offset, segments)])
    last_offsets = last_batches.last_offsets(round_.now_ms, round_.expiration_ms)
    return transactions, CleaningContext(
        round_.now_ms,
        round_.now_ms + round_.retention_ms,
        np.union1d(last_offsets, [end - 1]),
        transactions.removable_markers(),
    )


def _next_offsets(segments: Sequence[bytes]) -> list[int]:
    offsets: list[int] = []
    for segment in segments:
        offsets.append(next_offset(segment, offsets[-1] if offsets else 0))
    return offsets


def _bitmaps(
    segments: Sequence[bytes],
    transactions: CleanedTransactionMetadata,
    round_: Round,
    keys: KeyRange,
    engine: Engine,
) -> tuple[list[RetainedBitmap], int]:
    """Scan one range of keys; returns the bitmaps, and where the keys end that were scanned."""
    key_scan = KeyScan(SEED, round_.map_bytes, keys, engine.read, engine.make_map)
    first_dirty = bisect_right(_next_offsets(segments), round_.dirty_from)
    outcomes = transactions.outcomes()
    for segment in segments[first_dirty:]:
        key_scan.start_dirty_segment()
        batches = scan(segment)
        aborted = outcomes.is_aborted(batches, {})
        key_scan.add_dirty(segment, batches, aborted, round_.dirty_from)
    clean = segments[: first_dirty + 1]
    for segment in clean:
        key_scan.start_clean_segment()
        batches = scan(segment)
        aborted = outcomes.is_aborted(batches, {})
        key_scan.add_clean(segment, batches, aborted, round_.dirty_from)
    of_dirty, of_clean = key_scan.bitmaps()
    if len(clean) > first_dirty:
        of_dirty[0] = of_dirty[0].union(of_clean.pop())
    return [*of_clean, *of_dirty], key_scan.keys.end
