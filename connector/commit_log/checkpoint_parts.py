"""Which segments of a large state are in which part of its checkpoints.

The rule: a part has the segments that the commits of a range of versions added. No commit adds to
an older range, so a part only ever loses segments. It is valid for a later state if the state has
as many segments of the range as the part; then the checkpoint names it and it is not written again.
Segments of the latest versions are in the checkpoint itself until they are enough for a part.

When a part may be deleted: the file of the last expired version names the checkpoint that it
depends on. Log expiration deletes parts that neither this checkpoint names nor any checkpoint that
is listed after the file was created, and no part that was written above that version. So a part is
certain to stay if it was written above the last expired version, or if that checkpoint names it. No
other part is named again, and no version expires on a checkpoint that names one
(`commit_expiration.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit_log_paths import (
    MAX_VERSION,
    CheckpointName,
    parse_checkpoint_name,
)
from klog.connector.commit_log.live_segments import VERSION_COLUMN
from klog.logformat.arrow_values import from_numpy, to_numpy

PART_ROWS = 50_000
"""A part has about so many segments, 3 MB; a state of up to twice as many has no parts."""

Versions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """The file of a part, and the segments in it.

    It has `rows` segments, which commits from `start_version` to before `end_version` added.
    """

    name: CheckpointName
    start_version: int
    end_version: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the entry of this part in a checkpoint's metadata."""
        return {
            "file": str(self.name),
            "first": self.start_version,
            "end": self.end_version,
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Part:
        """Parse the entry of a part in a checkpoint's metadata.

        Args:
            fields: The entry, whose values may be anything.

        Raises:
            ValueError: A value is out of range.
            KeyError: A field is missing.
            TypeError: A value has another type.
        """
        name = parse_checkpoint_name(fields["file"])
        first, end, rows = (fields[key] for key in ("first", "end", "rows"))
        if name is None or not 0 <= first < end <= MAX_VERSION + 1 or rows < 0:
            raise ValueError(f"{dict(fields)} is not a part")
        return cls(name, first, end, rows)


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Parts that are on the store and still valid, and ranges of versions that need new ones."""

    kept_parts: tuple[Part, ...] = ()
    new_ranges: tuple[tuple[int, int], ...] = ()


def plan_parts(
    rows: pa.Table, earlier_parts: Sequence[Part], may_keep: Callable[[Part], bool]
) -> PartPlan:
    """Choose the parts of a state's checkpoint.

    A part that has become small is written again, together with the segments next to it.

    Args:
        rows: The live segments, with the version that added each.
        earlier_parts: The parts of an earlier checkpoint, in order of version.
        may_keep: Returns whether a part is certain to stay on the store.
    """
    if len(rows) <= 2 * PART_ROWS:
        return PartPlan()
    versions: Versions = np.sort(to_numpy(rows[VERSION_COLUMN]))
    small = max(1, PART_ROWS // 4)
    kept_parts = tuple(
        part
        for part in earlier_parts
        if part.rows >= small and _count(versions, part) == part.rows and may_keep(part)
    )
    new_ranges: list[tuple[int, int]] = []
    begin = 0
    for part in kept_parts:
        new_ranges += _ranges(versions, begin, part.start_version, small)
        begin = part.end_version
    # The last segments are too few for a part, and stay in the checkpoint.
    new_ranges += _ranges(versions, begin, int(versions[-1]) + 1, PART_ROWS)
    return PartPlan(kept_parts, tuple(new_ranges))


def rows_in_range(rows: pa.Table, first: int, end: int) -> pa.Table:
    """Return the segments that commits of a range of versions added.

    Args:
        rows: The segments, with the version that added each.
        first: The first version.
        end: The version after the last one.
    """
    versions = rows[VERSION_COLUMN]
    is_in_range = pc.and_(pc.greater_equal(versions, first), pc.less(versions, end))
    return rows.filter(is_in_range)


def rows_outside_parts(rows: pa.Table, parts: Sequence[Part]) -> pa.Table:
    """Return the segments that are in no part.

    Args:
        rows: The segments, with the version that added each.
        parts: The parts.
    """
    if not parts:
        return rows
    versions = to_numpy(rows[VERSION_COLUMN])
    is_outside = np.ones(len(rows), np.bool_)
    for part in parts:
        is_outside &= (versions < part.start_version) | (versions >= part.end_version)
    return rows.filter(from_numpy(is_outside))


def _count(versions: Versions, part: Part) -> int:
    first, end = np.searchsorted(versions, [part.start_version, part.end_version])
    return int(end - first)


def _ranges(versions: Versions, begin: int, end: int, min_rows: int) -> list[tuple[int, int]]:
    """Split versions from `begin` to before `end` so that each range has enough segments.

    The last segments have no range if they are fewer than `min_rows`.
    """
    row, end_row = (int(position) for position in np.searchsorted(versions, [begin, end]))
    ranges = []
    while end_row - row >= min_rows:
        # A commit is never split: its last segment ends the range.
        last = int(versions[min(row + PART_ROWS, end_row) - 1])
        ranges.append((begin, last + 1))
        begin, row = last + 1, int(np.searchsorted(versions, last + 1))
    return ranges
