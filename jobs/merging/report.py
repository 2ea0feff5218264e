"""What a merge did, or would do: a line a partition, and one of all."""

from __future__ import annotations

from dataclasses import dataclass

from klog.jobs.choosing import change
from klog.jobs.failures import Failure
from klog.jobs.report import PartitionsReport


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """What became of a partition.

    `left` says why nothing was done, if nothing was; `failure` if that was a fault.
    `size_bytes` is what was copied, `shifted` counts the segments whose offsets were written anew.
    """

    topic: str
    partition: int
    segments: int
    segments_after: int
    size_bytes: int = 0
    shifted: int = 0
    left: str = ""
    failure: Failure | None = None

    @property
    def is_worked(self) -> bool:
        """Tell whether it was merged, or would be."""
        return not self.left and self.failure is None


class MergeReport(PartitionsReport[MergedPartition]):
    """What a merge did, or would do."""

    __slots__ = ()

    def _said_of(self, one: MergedPartition) -> dict[str, object]:
        return {
            "Topic": one.topic,
            "Partition": one.partition,
            "Segments": change(one.segments, one.segments_after, is_done=one.is_worked),
            "Bytes": f"{one.size_bytes:,}",
            "Shifted": one.shifted or None,
            "Left": one.left or None,
        }

    def _said_of_all(self) -> dict[str, object]:
        worked = [one for one in self.partitions if one.is_worked]
        before = sum(one.segments for one in worked)
        after = sum(one.segments_after for one in worked)
        return {
            "WouldMerge" if self.dry_run else "Merged": len(worked),
            "Segments": change(before, after, is_done=True),
            "Bytes": f"{sum(one.size_bytes for one in worked):,}",
        }
