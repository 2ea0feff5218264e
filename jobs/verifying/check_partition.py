"""Verify a partition: collect the findings of its segments, and check that they fit each other.

The rule: segments are checked by tasks in any order, and their results are taken in the order of
the log, so what goes from one to the next (sequences, open transactions) is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.jobs.verifying.check_aborted import (
    OpenData,
    SegmentTransactions,
    resolve_open_data,
)
from klog.jobs.verifying.check_gaps_and_overlaps import (
    PartitionBounds,
    check_gaps_and_overlaps,
)
from klog.jobs.verifying.check_segment import SegmentFacts
from klog.jobs.verifying.check_sequences import (
    SequenceRuns,
    find_wrong_sequences,
    join_runs,
)
from klog.jobs.verifying.findings import Finding

_MAX_PARTS = 1000
"""The runs of so many segments are joined before more come: most follow each other."""


@dataclass(frozen=True, slots=True)
class VerifiedPartition:
    """How much of a partition could be read, and what is wrong with it."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    findings: tuple[Finding, ...] = ()


class NeighbourFacts:
    """What was found in neighbouring segments of a partition, joined as they come.

    A producer whose batches follow each other over several segments takes as much memory as in one.
    """

    def __init__(self, base_offset: int, cleaned_to: int = 0) -> None:
        """Begin with no segment.

        Args:
            base_offset: The first offset of the first segment.
            cleaned_to: The offset up to which the partition was compacted.
        """
        self.base_offset = self.end_offset = base_offset
        self._cleaned_to = cleaned_to
        self.total = VerifiedPartition()
        self.findings: list[Finding] = []
        self.has_end = True
        self.transactions = SegmentTransactions()
        self._parts: list[SequenceRuns] = []

    @property
    def runs(self) -> SequenceRuns:
        """Return the runs of all segments."""
        return join_runs(self._parts)

    def add(self, topic: str, number: int, entry: SegmentEntry, facts: SegmentFacts) -> None:
        """Add the next segment.

        Args:
            topic: The topic.
            number: The segment's number in its partition.
            entry: The segment's entry.
            facts: What was found in it.
        """
        runs, base_offset = facts.runs.in_file(number), entry["base_offset"]
        if not self.has_end or _may_be_emptied(self.end_offset, base_offset, self._cleaned_to):
            runs = runs.with_gap_before(base_offset)
        self._parts.append(runs)
        if len(self._parts) >= _MAX_PARTS:
            self._parts = [self.runs]
        wrong = self.transactions.append(facts.transactions, topic, entry["partition"])
        self.findings += [*facts.findings, *wrong]
        self.end_offset = entry["next_offset"]
        self.has_end = facts.has_end and entry["origin"] not in ("adopt", "compact")
        self.total = VerifiedPartition(
            self.total.segments + 1,
            self.total.batches + facts.batches,
            self.total.records + facts.records,
            self.total.size_bytes + facts.size_bytes,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the runs joined."""
        state = {
            "total": self.total,
            "findings": self.findings,
            "end_offset": self.end_offset,
            "has_end": self.has_end,
            "transactions": self.transactions,
            "_parts": [self.runs],
        }
        return (NeighbourFacts, (self.base_offset, self._cleaned_to), state)


def verify_partition(
    bounds: PartitionBounds, segments: pa.Table, facts: Iterator[NeighbourFacts]
) -> VerifiedPartition:
    """Join what was found in the segments of a partition, and check that they fit each other.

    Args:
        bounds: The partition's bounds.
        segments: Its segments in order of offset, as `segment_entries.SCHEMA`.
        facts: What was found; those of this partition come next.
    """
    total = VerifiedPartition()
    parts: list[SequenceRuns] = []
    findings = check_gaps_and_overlaps(bounds, segments)
    has_end, end_offset = True, 0
    open_data: OpenData = {}
    while total.segments < len(segments):
        task = next(facts)
        findings += task.findings
        findings += resolve_open_data(open_data, task.transactions, bounds.topic, bounds.partition)
        # Nothing is before offset 0; else what was before the first segment was deleted.
        is_deleted = not total.segments and task.base_offset > 0
        is_emptied = _may_be_emptied(end_offset, task.base_offset, bounds.cleaned_to)
        has_gap = not has_end or is_deleted or is_emptied
        parts.append(task.runs.with_gap_before(task.base_offset) if has_gap else task.runs)
        has_end, end_offset = task.has_end, task.end_offset
        if len(parts) >= _MAX_PARTS:
            parts = [join_runs(parts)]
        total = VerifiedPartition(
            total.segments + task.total.segments,
            total.batches + task.total.batches,
            total.records + task.total.records,
            total.size_bytes + task.total.size_bytes,
        )
    findings += _sequence_findings(bounds, join_runs(parts), segments["file"])
    return replace(total, findings=tuple(findings))


def _may_be_emptied(end_offset: int, base_offset: int, cleaned_to: int) -> bool:
    """Return whether a compaction may have removed all that was between two segments."""
    return end_offset < base_offset <= cleaned_to


def _sequence_findings(
    bounds: PartitionBounds, runs: SequenceRuns, files: pa.ChunkedArray
) -> Iterator[Finding]:
    wrong, due = find_wrong_sequences(runs)
    for number in range(len(wrong)):
        yield Finding(
            bounds.topic,
            bounds.partition,
            files[int(wrong.file[number])].as_py(),
            "sequence",
            f"producer {wrong.producer_id[number]}, epoch {wrong.epoch[number]}: sequence "
            f"{wrong.first_sequence[number]} where {due[number]} is due",
            int(wrong.position[number]),
            int(wrong.offset[number]),
        )
