"""What a merge did, or would do: a line for each partition, and one with the totals."""

from __future__ import annotations

from dataclasses import dataclass

from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.partitions_report import PartitionsReport
from klog.jobs.shared.report_fields import before_and_after


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """What a merge did to a partition; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        segments: How many segments it had before.
        segments_after: How many it has after the job.
        size_bytes: How many bytes were copied.
        shifted: How many segments got their offsets rewritten.
        left: Why nothing was done; empty if something was.
        failure: What failed; None if nothing did.
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
    def is_merged(self) -> bool:
        """Return whether it was merged, or would be."""
        return not self.left and self.failure is None


class MergeReport(PartitionsReport[MergedPartition]):
    """What a merge did, or would do."""

    __slots__ = ()

    def _partition_labels(self, partition: MergedPartition) -> dict[str, object]:
        return {
            "Topic": partition.topic,
            "Partition": partition.partition,
            "Segments": before_and_after(
                partition.segments, partition.segments_after, is_done=partition.is_merged
            ),
            "Bytes": f"{partition.size_bytes:,}",
            "Shifted": partition.shifted or None,
            "Left": partition.left or None,
        }

    def _total_labels(self) -> dict[str, object]:
        merged = [partition for partition in self.partitions if partition.is_merged]
        before = sum(partition.segments for partition in merged)
        after = sum(partition.segments_after for partition in merged)
        return {
            "WouldMerge" if self.dry_run else "Merged": len(merged),
            "Segments": before_and_after(before, after, is_done=True),
            "Bytes": f"{sum(partition.size_bytes for partition in merged):,}",
        }
