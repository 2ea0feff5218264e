"""What retention deleted, or would delete: a line for each partition, and one with the totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.partitions_report import PartitionsReport


@dataclass(frozen=True, slots=True)
class RetainedPartition:
    """What a partition loses, and its new log start; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        log_start: The new log start offset.
        segments: How many segments the partition loses.
        records: Their records.
        size_bytes: Their bytes.
        failure: What failed; None if nothing did. With a failure, the other fields are what the
            partition would have lost.
    """

    topic: str
    partition: int
    log_start: int
    segments: int
    records: int
    size_bytes: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class RetainReport(PartitionsReport[RetainedPartition]):
    """What retention deleted, or would delete; a partition that loses nothing is not in it.

    Attributes:
        topics: How many topics the job looked at.
    """

    topics: int = 0

    def _partition_labels(self, partition: RetainedPartition) -> dict[str, object]:
        return {
            "Topic": partition.topic,
            "Partition": partition.partition,
            "LogStart": partition.log_start,
            "Segments": f"{partition.segments:,}",
            "Records": f"{partition.records:,}",
            "Bytes": f"{partition.size_bytes:,}",
        }

    def _total_labels(self) -> dict[str, object]:
        deleted = [partition for partition in self.partitions if partition.failure is None]
        return {
            "Topics": self.topics,
            "WouldRemove" if self.dry_run else "Removed": _total(deleted, "segments"),
            "Records": _total(deleted, "records"),
            "Bytes": _total(deleted, "size_bytes"),
        }

    def _json_totals(self) -> Mapping[str, object]:
        return {"topics": self.topics}


def _total(partitions: Sequence[RetainedPartition], field: str) -> str:
    return f"{sum(getattr(partition, field) for partition in partitions):,}"
