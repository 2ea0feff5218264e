"""Check that each key is there once in the part of a partition that was compacted.

The rule: what a compaction of that part would remove must not be there. Its records are marked as
compaction marks them. The first few wrong records are reported one by one, the rest is counted.
Damage is reported elsewhere and shows nothing about keys. If the store does not give the files, a
finding says that nothing is known of their keys. Records below the log start are not checked:
neither readers nor compactions see them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.errors import CorruptRecordError, KlogError, UnsupportedFormatError
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking.mark_records import MarkTask, mark_key_range
from klog.jobs.shared.segment_walk import walk_segment
from klog.jobs.shared.task_memory import MAP_BYTES
from klog.jobs.verifying.findings import Finding
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap

MAX_REPORTED = 10
"""So many records of a partition are reported one by one."""
_DAMAGE = (CorruptRecordError, UnsupportedFormatError)


@dataclass(frozen=True, slots=True)
class KeysTask:
    """All segments of a partition that were compacted, and where its log starts."""

    root: str
    storage: StorageOptions
    topic: str
    partition: int
    segments: EntryRows
    log_start: int


def find_repeated_keys(task: KeysTask) -> list[Finding]:
    """Find the records that have no key, and those whose key a later record has.

    Args:
        task: The partition.

    Returns:
        The findings; none if a segment is damaged, which is another finding.
    """
    root = open_klog_root(task.root, task.storage)
    seed = Seed(secrets.randbits(64), secrets.randbits(64))
    entry, no_segments = task.segments[0], task.segments.part(0, 0)
    start_offset = max(entry["base_offset"], task.log_start)
    mark_task = MarkTask(
        task.root, task.storage, task.segments, no_segments, start_offset, 0, seed, MAP_BYTES
    )
    try:
        bitmaps = mark_key_range(mark_task).bitmaps
        if entry["base_offset"] < start_offset:
            bitmaps = (_retained_below(root, entry, bitmaps[0], start_offset), *bitmaps[1:])
    except _DAMAGE:
        return []
    count = sum(bitmap.count - bitmap.retained_count for bitmap in bitmaps)
    findings: list[Finding] = []
    with suppress(*_DAMAGE):  # If it comes after the marking, the findings so far are kept.
        records = _repeated_records(root, task, bitmaps)
        for finding in islice(records, min(count, MAX_REPORTED)):
            findings.append(finding)  # noqa: PERF402 - one by one, as the next may raise
    return [*findings, *_count_of_rest(task, count - len(findings))]


def unreadable_keys(task: KeysTask, error: KlogError | OSError) -> Finding:
    """Return the finding that the store did not give the files of the keys.

    Args:
        task: The partition.
        error: What the store raised.
    """
    end_offset = task.segments[-1]["next_offset"]
    reason = f"whether each key is there once below offset {end_offset} is not known: {error}"
    return Finding(task.topic, task.partition, None, "unreadable", reason)


def _repeated_records(
    root: KlogRoot, task: KeysTask, bitmaps: Iterable[RetainedBitmap]
) -> Iterator[Finding]:
    end_offset = task.segments[-1]["next_offset"]
    for entry, bitmap in zip(task.segments, bitmaps, strict=True):
        for offset, has_key in _removable_records(root, entry, bitmap):
            fault = "its key comes again" if has_key else "it has no key"
            reason = f"a record below offset {end_offset}, up to which it was compacted: {fault}"
            yield Finding(task.topic, task.partition, entry["file"], "key", reason, offset=offset)


def _retained_below(
    root: KlogRoot, entry: SegmentEntry, bitmap: RetainedBitmap, end_offset: int
) -> RetainedBitmap:
    """Return a bitmap with all records below an offset retained."""
    retained, _ = bitmap.masks()
    count = 0

    def add_chunk(data: bytes, batches: v2.Batches) -> None:
        nonlocal count
        data_batches = batches.where(~batches.is_control)
        for part in decode_parts(data, data_batches, ()):
            count += int((part.offset < end_offset).sum())

    walk_segment(root, entry, add_chunk)
    retained[:count] = True
    return replace(bitmap, retained=np.packbits(retained).tobytes())


def _removable_records(
    root: KlogRoot, entry: SegmentEntry, bitmap: RetainedBitmap
) -> Iterator[tuple[int, bool]]:
    """Yield the offset of records that are not retained, and whether they have a key."""
    if bitmap.retained_count == bitmap.count:
        return
    retained, _ = bitmap.masks()
    row = 0
    records: list[tuple[int, bool]] = []

    def add_chunk(data: bytes, batches: v2.Batches) -> None:
        nonlocal row
        data_batches = batches.where(~batches.is_control)
        for part in decode_parts(data, data_batches, ("key",)):
            assert part.key is not None
            is_removable: Mask = ~retained[row : row + len(part.offset)]
            row += len(is_removable)
            has_key = part.key.is_valid().to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(is_removable)[:MAX_REPORTED]
            records.extend(zip(part.offset[rows].tolist(), has_key[rows].tolist(), strict=True))

    walk_segment(root, entry, add_chunk)
    yield from records


def _count_of_rest(task: KeysTask, count: int) -> Iterator[Finding]:
    if count:
        yield Finding(task.topic, task.partition, None, "key", f"and {count:,} more such records")
