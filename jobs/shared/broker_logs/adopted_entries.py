"""Build the entries of a partition's segments from their scans, aborted transactions included.

The rule: data that no marker in its own segment follows is decided by its producer's first marker
in the later segments. If there is none, the transaction is open, and the log is refused unless the
caller says how open transactions ended. (docs/format.md, 10 and 11.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.jobs.shared.broker_logs.broker_topics import refuse_open_transactions
from klog.jobs.shared.segment_scan import ScannedSegment
from klog.logformat.producers.control_records import ABORT
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class AdoptedFile:
    """A segment's log in the klog root, and the offsets of the log that it stands for."""

    file: str
    base_offset: int
    next_offset: int
    torn_bytes: int = 0
    index_bytes: int = 0
    time_index_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A segment's file in the klog root, and what its bytes show."""

    file: AdoptedFile
    contents: ScannedSegment


def adopted_entries(
    name: TopicPartition,
    segments: Sequence[ScannedFile],
    log_end: int,
    open_transactions: str | None,
) -> list[SegmentEntry]:
    """Return the entries of a partition's segments.

    Args:
        name: The partition.
        segments: Its segments in order.
        log_end: Its log end.
        open_transactions: How open transactions ended, `abort` or `commit`; None refuses them.

    Raises:
        KlogError: There is an open transaction, and `open_transactions` is None.
    """
    later_markers: dict[int, tuple[int, int]] = {}
    first_offsets: dict[int, int] = {}
    entries = []
    for segment in reversed(segments):
        scanned = segment.contents
        aborted_count, aborted = scanned.aborted_count, list(scanned.aborted)
        for producer_id, (first, count) in scanned.open_data.items():
            last, kind = later_markers.get(producer_id, (-1, -1))
            if last < 0:
                first_offsets[producer_id] = first
                last, kind = log_end - 1, ABORT if open_transactions == "abort" else -1
            if kind == ABORT:
                aborted.append((producer_id, first, last))
                aborted_count += count
        later_markers.update(scanned.first_markers)
        entries.append(_entry(name, segment.file, scanned, aborted_count, aborted))
    if open_transactions is None:
        refuse_open_transactions(name, first_offsets)
    return entries[::-1]


def _entry(
    name: TopicPartition,
    file: AdoptedFile,
    scanned: ScannedSegment,
    aborted_count: int,
    aborted: Iterable[tuple[int, int, int]],
) -> SegmentEntry:
    by_last_offset = sorted(aborted, key=lambda transaction: (transaction[2], transaction[0]))
    return build_segment_entry(
        file=file.file,
        partition=name.partition,
        base_offset=file.base_offset,
        next_offset=file.next_offset,
        size_bytes=scanned.size_bytes,
        index_bytes=file.index_bytes,
        time_index_bytes=file.time_index_bytes,
        crc32c=scanned.crc32c,
        record_count=scanned.record_count - aborted_count,
        batch_count=scanned.batch_count,
        min_timestamp_ms=scanned.min_timestamp_ms,
        max_timestamp_ms=scanned.max_timestamp_ms,
        leader_epoch=scanned.leader_epoch,
        codec=scanned.codec,
        producer_ids=scanned.producer_ids,
        origin="adopt",
        torn_bytes=file.torn_bytes,
        aborted=[number for transaction in by_last_offset for number in transaction],
    )
