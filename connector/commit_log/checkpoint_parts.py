"""Which segments of a large state stand in which part of its checkpoints.

The rule: a part has the segments that were added by the commits of a range of versions. No commit
adds to an older range, so a part only ever loses segments: it holds for a later state if that has
as many of the range as the part has, and then it is named again and not written again. Segments of
the latest versions stand in the checkpoint itself, until they are enough for a part.

When a part may go: a boundary says by its content on which checkpoint it rests. Who cleans behind
the boundary deletes parts that neither that checkpoint names nor any that is listed after the
boundary was made, and none that was written above the boundary. So a part is certain to stay if it
was written above the newest boundary, or its checkpoint names it: others are not named again, and a
checkpoint that names one carries no boundary (`cleaning.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.commit_log.commit_log_paths import (
    MAX_VERSION,
    CheckpointName,
    parse_checkpoint_name,
)
from klog.connector.commit_log.live_segments import VERSION_COLUMN

PART_ROWS = 50_000
"""A part has about so many segments, 3 MB; a state of twice as many has no parts."""

Versions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """A part's file, and how many segments it has of the versions from `first` to before `end`."""

    name: CheckpointName
    start_version: int
    end_version: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Give what a checkpoint says of its part."""
        return {
            "file": str(self.name),
            "first": self.start_version,
            "end": self.end_version,
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Part:
        """Read what a checkpoint says; `ValueError`, `KeyError` or `TypeError` if it is nothing."""
        name = parse_checkpoint_name(said["file"])
        first, end, rows = (said[key] for key in ("first", "end", "rows"))
        if name is None or not 0 <= first < end <= MAX_VERSION + 1 or rows < 0:
            raise ValueError(f"{dict(said)} is no part")
        return cls(name, first, end, rows)


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Parts that are there and still hold, and ranges of versions that need new ones."""

    kept_parts: tuple[Part, ...] = ()
    new_ranges: tuple[tuple[int, int], ...] = ()


def plan_parts(rows: pa.Table, known: Sequence[Part], may_keep: Callable[[Part], bool]) -> PartPlan:
    """Choose the parts of a state; `known` are those of an earlier checkpoint, in order.

    A part that has become small is written again, together with what lies beside it.
    """
    if len(rows) <= 2 * PART_ROWS:
        return PartPlan()
    versions: Versions = np.sort(rows[VERSION_COLUMN].to_numpy())
    small = max(1, PART_ROWS // 4)
    kept = tuple(
        part
        for part in known
        if part.rows >= small and _count(versions, part) == part.rows and may_keep(part)
    )
    wanted: list[tuple[int, int]] = []
    begin = 0
    for part in kept:
        wanted += _ranges(versions, begin, part.start_version, small)
        begin = part.end_version
    # What is left over at the end is too little for a part, and stays in the checkpoint.
    wanted += _ranges(versions, begin, int(versions[-1]) + 1, PART_ROWS)
    return PartPlan(kept, tuple(wanted))


def rows_in_range(rows: pa.Table, first: int, end: int) -> pa.Table:
    """Give the segments that commits from `first` to before `end` added."""
    versions = rows[VERSION_COLUMN]
    among = pc.and_(pc.greater_equal(versions, first), pc.less(versions, end))
    return rows.filter(among)


def rows_outside_parts(rows: pa.Table, parts: Sequence[Part]) -> pa.Table:
    """Give the segments that no part has."""
    if not parts:
        return rows
    versions = rows[VERSION_COLUMN].to_numpy()
    without = np.ones(len(rows), np.bool_)
    for part in parts:
        without &= (versions < part.start_version) | (versions >= part.end_version)
    return rows.filter(pa.array(without))


def _count(versions: Versions, part: Part) -> int:
    first, end = np.searchsorted(versions, [part.start_version, part.end_version])
    return int(end - first)


def _ranges(versions: Versions, begin: int, end: int, least: int) -> list[tuple[int, int]]:
    """Cut versions from `begin` to before `end` so that each range has enough segments.

    At the end fewer than `least` have no range.
    """
    at, behind = (int(one) for one in np.searchsorted(versions, [begin, end]))
    found = []
    while behind - at >= least:
        # A commit is never parted: its last segment ends the range.
        last = int(versions[min(at + PART_ROWS, behind) - 1])
        found.append((begin, last + 1))
        begin, at = last + 1, int(np.searchsorted(versions, last + 1))
    return found
