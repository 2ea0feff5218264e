"""Check that a partition's segments have each offset of the log once.

The rule: appended segments follow each other from the log start to the log end. If the log was
compacted, or a segment was adopted, offsets may be missing; no offset is ever there twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit import Hole
from klog.jobs.verifying.findings import Finding

_SPARSE_ORIGINS = ("adopt", "compact")


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """The bounds of a partition; below `cleaned_to` offsets may have no record."""

    topic: str
    partition: int
    log_start: int
    log_end: int
    cleaned_to: int = 0
    holes: tuple[Hole, ...] = ()


def check_gaps_and_overlaps(bounds: PartitionBounds, segments: pa.Table) -> list[Finding]:
    """Return the gaps and overlaps of a partition's segments.

    Args:
        bounds: The partition's bounds.
        segments: Its segments in order of offset, as `segment_entries.SCHEMA`.
    """
    base_offsets = segments["base_offset"].to_numpy()
    next_offsets = segments["next_offset"].to_numpy()
    is_sparse = pc.is_in(segments["origin"], value_set=pa.array(_SPARSE_ORIGINS)).to_numpy()
    # What ends before and what begins after each place between two segments, or at a bound.
    before = np.append(bounds.log_start, np.maximum.accumulate(next_offsets)).astype(np.int64)
    after = np.append(base_offsets, bounds.log_end).astype(np.int64)
    may_have_gap = np.append(False, is_sparse) | np.append(is_sparse, False)
    may_have_gap |= after <= bounds.cleaned_to
    for hole in bounds.holes:
        # A hole reaches from one segment or bound to the next, alone or with other holes.
        before[before == max(hole.base_offset, bounds.log_start)] = hole.next_offset
    has_overlap = before[1:-1] > after[1:-1]

    def file(number: int) -> str | None:
        return segments["file"][number].as_py() if number < len(segments) else None

    findings = [
        Finding(
            bounds.topic,
            bounds.partition,
            file(number),
            "gap",
            f"no segment has the offsets {before[number]} to {after[number] - 1}",
            offset=int(before[number]),
        )
        for number in np.flatnonzero((before < after) & ~may_have_gap).tolist()
    ]
    findings += [
        Finding(
            bounds.topic,
            bounds.partition,
            file(number + 1),
            "overlap",
            f"two segments have the offsets {after[number + 1]} to "
            f"{min(before[number + 1], next_offsets[number + 1]) - 1}",
            offset=int(after[number + 1]),
        )
        for number in np.flatnonzero(has_overlap).tolist()
    ]
    return findings
