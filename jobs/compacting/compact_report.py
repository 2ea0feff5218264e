"""What a compaction did, or would do: a line for each partition, and one with the totals."""

from __future__ import annotations

from dataclasses import dataclass

from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.partitions_report import PartitionsReport
from klog.jobs.shared.report_fields import before_and_after


@dataclass(frozen=True, slots=True)
class CompactedPartition:
    """What a compaction did to a partition; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        dirty_ratio: The part of its bytes that was not compacted before, from 0 to 1.
        cleaned_from: The offset at which the part that was not compacted began.
        cleaned_to: The offset up to which the log is compacted now, exclusive.
        segments: The segments below `cleaned_to` before.
        records: Their records.
        size_bytes: Their bytes.
        segments_after: The segments below `cleaned_to` after the job.
        records_after: Their records.
        size_bytes_after: Their bytes.
        left: Why nothing was done; empty if something was.
        failure: What failed; None if nothing did.
    """

    topic: str
    partition: int
    dirty_ratio: float
    cleaned_from: int
    cleaned_to: int
    segments: int = 0
    records: int = 0
    size_bytes: int = 0
    segments_after: int = 0
    records_after: int = 0
    size_bytes_after: int = 0
    left: str = ""
    failure: Failure | None = None

    @property
    def is_compacted(self) -> bool:
        """Return whether it was compacted, or would be."""
        return not self.left and self.failure is None


class CompactReport(PartitionsReport[CompactedPartition]):
    """What a compaction did, or would do."""

    __slots__ = ()

    def _partition_labels(self, partition: CompactedPartition) -> dict[str, object]:
        is_done = partition.is_compacted and not self.dry_run
        return {
            "Topic": partition.topic,
            "Partition": partition.partition,
            "DirtyRatio": f"{partition.dirty_ratio:.3f}",
            "CleanedTo": partition.cleaned_to,
            "Segments": before_and_after(
                partition.segments, partition.segments_after, is_done=is_done
            ),
            "Records": before_and_after(
                partition.records, partition.records_after, is_done=is_done
            ),
            "Bytes": before_and_after(
                partition.size_bytes, partition.size_bytes_after, is_done=is_done
            ),
            "Left": partition.left or None,
        }

    def _total_labels(self) -> dict[str, object]:
        compacted = [partition for partition in self.partitions if partition.is_compacted]
        total = {
            field: sum(getattr(partition, field) for partition in compacted)
            for field in ("records", "records_after", "size_bytes", "size_bytes_after")
        }
        is_done = not self.dry_run
        return {
            "WouldCompact" if self.dry_run else "Compacted": len(compacted),
            "Records": before_and_after(total["records"], total["records_after"], is_done=is_done),
            "Bytes": before_and_after(
                total["size_bytes"], total["size_bytes_after"], is_done=is_done
            ),
        }
