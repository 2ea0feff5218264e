"""Read the segments of a partition for a cleaning: transactions first, then records.

The rule: klog writes no transactions, so headers are read for them only if a broker wrote any
segment of the partition. A transaction in what is cleaned may end in a later segment, and what
aborts it must be known before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry, aborted_transactions
from klog.connector.producer_ids import MIN_PRODUCER_ID
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.segment_walk import walk_segment
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.cleaning.producer_last_batches import ProducerLastBatches
from klog.logformat.cleaning.removable_markers import CleanedTransactionMetadata
from klog.logformat.producers.transaction_outcomes import (
    TransactionOutcomes,
    aborted_rows,
    is_aborted_by_index,
)


@dataclass(frozen=True, slots=True)
class CleaningReader:
    """Reads segments whose transactions ended as `outcomes` has it."""

    root: KlogRoot
    outcomes: TransactionOutcomes
    first_dirty_offset: int

    def is_aborted(self, entry: SegmentEntry, batches: v2.Batches) -> Mask:
        """Return which batches of a segment are data of aborted transactions.

        Args:
            entry: The segment's entry.
            batches: Batches of the segment, with their offsets in the log.
        """
        # The entry of an adopted segment has those whose marker is in a later segment.
        by_entry = is_aborted_by_index(batches, aborted_rows(aborted_transactions(entry)))
        return self.outcomes.is_aborted(batches, {}) | by_entry

    def read(
        self,
        segments: EntryRows,
        start_segment: Callable[[], None],
        add: Callable[[bytes, v2.Batches, Mask, int], None],
        add_headers: Callable[[v2.Batches], None] | None = None,
    ) -> None:
        """Read segments from their first batch to their last.

        Args:
            segments: The segments.
            start_segment: Called before each segment.
            add: Gets the bytes of a chunk, its batches, which of them are aborted data, and the
                first dirty offset.
            add_headers: Gets the batches of each chunk, before `add` does.
        """
        for entry in segments:
            start_segment()

            def add_chunk(data: bytes, batches: v2.Batches, entry: SegmentEntry = entry) -> None:
                if add_headers is not None:
                    add_headers(batches)
                add(data, batches, self.is_aborted(entry, batches), self.first_dirty_offset)

            walk_segment(self.root, entry, add_chunk)


def read_transactions(
    root: KlogRoot,
    segments: EntryRows,
    later_segments: EntryRows,
    add_headers: Callable[[v2.Batches], None] | None = None,
) -> CleanedTransactionMetadata:
    """Read the transactions of a partition, if a broker wrote any of its segments.

    Args:
        root: The klog root.
        segments: The segments that are cleaned.
        later_segments: The segments after them.
        add_headers: Gets the batches of all segments, if they are read.
    """
    transactions = CleanedTransactionMetadata()

    def add_chunk(data: bytes, batches: v2.Batches) -> None:
        transactions.add(data, batches)
        if add_headers is not None:
            add_headers(batches)

    if has_broker_producers(segments) or has_broker_producers(later_segments):
        for entry in chain(segments, later_segments):
            walk_segment(root, entry, add_chunk)
    return transactions


def read_last_batches(root: KlogRoot, segments: EntryRows) -> ProducerLastBatches:
    """Read the last batch of each producer, from the headers of segments.

    Args:
        root: The klog root.
        segments: The segments, in order of offset.
    """
    last_batches = ProducerLastBatches()
    for entry in segments:
        walk_segment(root, entry, lambda _, batches: last_batches.add(batches))
    return last_batches


def has_broker_producers(segments: EntryRows) -> bool:
    """Return whether a producer that is not klog's wrote to segments.

    Args:
        segments: The segments.
    """
    min_id = pc.min(pc.list_flatten(segments.table["producer_ids"])).as_py()
    return min_id is not None and min_id < MIN_PRODUCER_ID
