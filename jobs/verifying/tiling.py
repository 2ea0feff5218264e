"""Whether the segments of a partition hold each offset of the log, and none of them twice.

The rule: what was appended lies side by side from the log start to the log end. Where the log was
compacted, or a segment came with an adopted log, offsets may be missing; none is ever there twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log.commit import Hole
from klog.jobs.verifying.findings import Finding

_SPARSE = ("adopt", "compact")


@dataclass(frozen=True, slots=True)
class Extent:
    """A partition's bounds; below `cleaned_to` offsets may have no record any more."""

    topic: str
    partition: int
    log_start: int
    log_end: int
    cleaned_to: int = 0
    holes: tuple[Hole, ...] = ()


def check_tiling(extent: Extent, segments: pa.Table) -> list[Finding]:
    """Compare segments, `entries.SCHEMA` in order of offset, with each other and the bounds."""
    bases, nexts = segments["base_offset"].to_numpy(), segments["next_offset"].to_numpy()
    sparse = pc.is_in(segments["origin"], value_set=pa.array(_SPARSE)).to_numpy()
    before = np.append(extent.log_start, np.maximum.accumulate(nexts)).astype(np.int64)
    after = np.append(bases, extent.log_end).astype(np.int64)
    may_lack = np.append(False, sparse) | np.append(sparse, False) | (after <= extent.cleaned_to)
    for hole in extent.holes:
        # A hole reaches from one segment or bound to the next, alone or with other holes.
        before[before == max(hole.base_offset, extent.log_start)] = hole.next_offset
    overlaps = before[1:-1] > after[1:-1]

    def file(number: int) -> str | None:
        return segments["file"][number].as_py() if number < len(segments) else None

    found = [
        Finding(
            extent.topic,
            extent.partition,
            file(number),
            "gap",
            f"no segment has the offsets {before[number]} to {after[number] - 1}",
            offset=int(before[number]),
        )
        for number in np.flatnonzero((before < after) & ~may_lack).tolist()
    ]
    found += [
        Finding(
            extent.topic,
            extent.partition,
            file(number + 1),
            "overlap",
            f"two segments have the offsets {after[number + 1]} to "
            f"{min(before[number + 1], nexts[number + 1]) - 1}",
            offset=int(after[number + 1]),
        )
        for number in np.flatnonzero(overlaps).tolist()
    ]
    return found
