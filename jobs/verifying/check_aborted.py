"""Check that commits hide what transactions aborted, and nothing else, by the control batches.

The rule: the next marker of its producer decides about data of a transaction, in whichever segment
of the partition the marker is (docs/format.md, 6 and 10). An entry's `aborted` must hide just the
aborted data. Data that no marker follows is not judged: its log was adopted with the transaction
open. Neither is data before bytes that could not be read, where a marker may have been.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klog.connector.commit_log.segment_entries import SegmentEntry, aborted_transactions
from klog.connector.segment_chunks import Chunk
from klog.errors import CorruptRecordError
from klog.jobs.verifying.findings import Finding, Findings
from klog.logformat.array_types import Longs, Mask
from klog.logformat.producers.control_records import ABORT
from klog.logformat.producers.transaction_outcomes import (
    aborted_rows,
    is_aborted_by_index,
    transaction_markers,
)

Marker = tuple[int, int]
"""The offset and the kind of a marker."""


@dataclass(slots=True)
class TransactionData:
    """Data of one transaction in a segment: where it begins, and how many batches are hidden."""

    file: str
    position: int
    offset: int
    hidden: int = 0
    shown: int = 0

    def fault(self, producer_id: int, marker: Marker) -> str | None:
        """Return what is wrong if this marker ends the transaction; None if nothing is.

        Args:
            producer_id: The producer of the transaction.
            marker: The marker.
        """
        offset, kind = marker
        count, verb = (self.shown, "shows") if kind == ABORT else (self.hidden, "hides")
        if not count:
            return None
        name = "ABORT" if kind == ABORT else "COMMIT"
        return (
            f"the commit {verb} {count} batches of a transaction of producer {producer_id}, and "
            f"the {name} marker at offset {offset} ends it"
        )


OpenData = dict[int, list[TransactionData]]
"""By producer id the data that no marker has followed yet."""


@dataclass(slots=True)
class SegmentTransactions:
    """What other segments must know of the transactions of neighbouring segments.

    `first_markers` are by producer id. With `is_unknown` a marker may be in bytes that could not be
    read, so the first ones are not known.
    """

    first_markers: dict[int, Marker] = field(default_factory=dict)
    open_data: OpenData = field(default_factory=dict)
    is_unknown: bool = False

    def append(self, later: SegmentTransactions, topic: str, partition: int) -> list[Finding]:
        """Add what is known of the segments after these, and return what is wrong of these.

        Args:
            later: What is known of the segments after these.
            topic: The topic.
            partition: The partition.
        """
        findings = resolve_open_data(self.open_data, later, topic, partition)
        self.is_unknown |= later.is_unknown
        if self.is_unknown:
            self.first_markers.clear()
        else:
            for producer_id, marker in later.first_markers.items():
                self.first_markers.setdefault(producer_id, marker)
        return findings


def resolve_open_data(
    open_data: OpenData, later: SegmentTransactions, topic: str, partition: int
) -> list[Finding]:
    """Compare open data with the markers of later segments, and add the open data of those.

    It takes time in proportion to what is known of the later segments.

    Args:
        open_data: The data of earlier segments, which is changed.
        later: What is known of the later segments.
        topic: The topic.
        partition: The partition.

    Returns:
        The findings about the earlier segments.
    """
    findings: list[Finding] = []
    if later.is_unknown:
        open_data.clear()
    else:
        for producer_id, marker in later.first_markers.items():
            for data in open_data.pop(producer_id, ()):
                reason = data.fault(producer_id, marker)
                if reason is not None:
                    place = data.position, data.offset
                    findings.append(Finding(topic, partition, data.file, "aborted", reason, *place))
    for producer_id, more in later.open_data.items():
        open_data.setdefault(producer_id, []).extend(more)
    return findings


class TransactionCheck:
    """Checks the transactions of one segment, whose chunks are added in order."""

    def __init__(self, entry: SegmentEntry, findings: Findings) -> None:
        """Begin with no batch."""
        self._file, self._offset_shift = entry["file"], entry["offset_shift"]
        self._findings = findings
        self._aborted: Longs = aborted_rows(aborted_transactions(entry))
        self._first_markers: dict[int, Marker] = {}
        self._open_data: dict[int, TransactionData] = {}
        self._is_unknown = False

    def add_unreadable(self) -> None:
        """Add bytes that cannot be read, in which a marker may have been."""
        self._is_unknown = True
        self._open_data.clear()

    def add(self, chunk: Chunk, valid: Mask) -> None:
        """Check the valid batches of a chunk, one by one if there are transactions.

        Args:
            chunk: The chunk.
            valid: Which of its batches are checked.
        """
        batches = chunk.batches
        is_data = batches.is_transactional_data & (batches.headers["count"] != 0)
        is_marker = batches.is_control & (batches.headers["producer_id"] >= 0)
        is_transactional = valid & (is_data | is_marker)
        transactional = batches.where(is_transactional)
        try:
            markers = transaction_markers(chunk.data, transactional)
            kinds = {offset: kind for offset, _, kind in markers}
        except CorruptRecordError:
            self.add_unreadable()
            return
        invalid_before = np.cumsum(~valid)
        invalid_counts = invalid_before[is_transactional].tolist()
        is_hidden = is_aborted_by_index(transactional, self._aborted).tolist()
        control = transactional.is_control.tolist()
        offsets = transactional.base_offsets.tolist()
        producer_ids = transactional.headers["producer_id"].tolist()
        invalid = 0
        for number in range(len(transactional)):
            if invalid_counts[number] > invalid:
                self.add_unreadable()
                invalid = invalid_counts[number]
            offset, producer_id = offsets[number], producer_ids[number]
            if not control[number]:
                position = chunk.position + int(transactional.starts[number])
                data = self._open_data.setdefault(
                    producer_id,
                    TransactionData(self._file, position, offset + self._offset_shift),
                )
                data.hidden += is_hidden[number]
                data.shown += not is_hidden[number]
            elif offset in kinds:
                self._end(producer_id, (offset + self._offset_shift, kinds[offset]))
        if len(valid) and invalid_before[-1] > invalid:
            self.add_unreadable()

    def result(self) -> SegmentTransactions:
        """Return what other segments must know."""
        open_data = {producer_id: [data] for producer_id, data in self._open_data.items()}
        first_markers = {} if self._is_unknown else self._first_markers
        return SegmentTransactions(first_markers, open_data, self._is_unknown)

    def _end(self, producer_id: int, marker: Marker) -> None:
        self._first_markers.setdefault(producer_id, marker)
        data = self._open_data.pop(producer_id, None)
        reason = None if data is None else data.fault(producer_id, marker)
        if data is not None and reason is not None:
            self._findings.add("aborted", reason, data.position, data.offset)
