"""What is told of a partition: the findings of its segments, and whether they fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from klog.connector.log.entries import Entry
from klog.jobs.verifying.aborted import Data, Decided, follow
from klog.jobs.verifying.findings import Finding
from klog.jobs.verifying.segment import SegmentFacts
from klog.jobs.verifying.sequences import Runs, joined, merged, unsound
from klog.jobs.verifying.tiling import Extent, check_tiling

_PARTS = 1000
"""Sequences of so many segments are joined before more are looked at: most follow each other."""


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """What a partition has, so far as it could be read, and what is wrong with it."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    findings: tuple[Finding, ...] = ()


class NeighbourFacts:
    """What was found in neighbouring segments of a partition, put together as they come.

    Of a producer that follows on from one to the next it holds no more than of a lone segment.
    """

    def __init__(self, base: int, cleaned_to: int = 0) -> None:
        """Begin at a segment's first offset; the partition was compacted up to `cleaned_to`."""
        self.base = self.end = base
        self._cleaned_to = cleaned_to
        self.total = PartitionReport()
        self.findings: list[Finding] = []
        self.ends_known = True
        self.decided = Decided()
        self._parts: list[Runs] = []

    @property
    def runs(self) -> Runs:
        """Give the runs of all."""
        return merged(joined(self._parts))

    def add(self, topic: str, number: int, entry: Entry, facts: SegmentFacts) -> None:
        """Take the next segment, which has this number in its partition."""
        runs = facts.runs.of_file(number)
        if not self.ends_known or _was_emptied(self.end, entry["base_offset"], self._cleaned_to):
            runs = runs.loose_at(entry["base_offset"])
        self._parts.append(runs)
        if len(self._parts) >= _PARTS:
            self._parts = [self.runs]
        wrong = self.decided.add(facts.decided, topic, entry["partition"])
        self.findings += [*facts.findings, *wrong]
        self.end = entry["next_offset"]
        self.ends_known = facts.ends_known and entry["origin"] not in ("adopt", "compact")
        self.total = PartitionReport(
            self.total.segments + 1,
            self.total.batches + facts.batches,
            self.total.records + facts.records,
            self.total.size_bytes + facts.size_bytes,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is known by now, as one."""
        state = {
            "total": self.total,
            "findings": self.findings,
            "end": self.end,
            "ends_known": self.ends_known,
            "decided": self.decided,
            "_parts": [self.runs],
        }
        return (NeighbourFacts, (self.base, self._cleaned_to), state)


def _was_emptied(end: int, base: int, cleaned_to: int) -> bool:
    """Tell whether a compaction may have left nothing of what lay between two segments."""
    return end < base <= cleaned_to


def put_together(
    extent: Extent, segments: pa.Table, facts: Iterator[NeighbourFacts]
) -> PartitionReport:
    """Put together what was found in the segments of a partition, which are next in `facts`."""
    total = PartitionReport()
    parts: list[Runs] = []
    findings = check_tiling(extent, segments)
    known, end = True, 0
    data: dict[int, list[Data]] = {}
    while total.segments < len(segments):
        one = next(facts)
        findings += one.findings
        findings += follow(data, one.decided, extent.topic, extent.partition)
        # Nothing lies before offset 0; else what lies before the first segment was deleted.
        is_first = not total.segments and one.base > 0
        is_loose = not known or is_first or _was_emptied(end, one.base, extent.cleaned_to)
        parts.append(one.runs.loose_at(one.base) if is_loose else one.runs)
        known, end = one.ends_known, one.end
        if len(parts) >= _PARTS:
            parts = [merged(joined(parts))]
        total = PartitionReport(
            total.segments + one.total.segments,
            total.batches + one.total.batches,
            total.records + one.total.records,
            total.size_bytes + one.total.size_bytes,
        )
    findings += _sequence_findings(extent, merged(joined(parts)), segments["file"])
    return replace(total, findings=tuple(findings))


def _sequence_findings(extent: Extent, runs: Runs, files: pa.ChunkedArray) -> Iterator[Finding]:
    wrong, due = unsound(runs)
    for number in range(len(wrong)):
        yield Finding(
            extent.topic,
            extent.partition,
            files[int(wrong.file[number])].as_py(),
            "sequence",
            f"producer {wrong.producer_id[number]}, epoch {wrong.epoch[number]}: sequence "
            f"{wrong.first[number]} where {due[number]} is due",
            int(wrong.position[number]),
            int(wrong.offset[number]),
        )
