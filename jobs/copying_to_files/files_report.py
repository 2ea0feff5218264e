"""What a copy to files did, or would do: a line for each partition, one with the totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.partitions_report import PartitionsReport
from klog.url_secrets import without_passwords


@dataclass(frozen=True, slots=True)
class FilesPartition:
    """What was copied of a partition; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        start_offset: The offset at which the files ended before the job.
        end_offset: The offset at which they end now, exclusive.
        records: How many records this run has committed.
        files: How many files this run has committed.
        size_bytes: Their bytes.
        failure: What failed; None if nothing did.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int = 0
    files: int = 0
    size_bytes: int = 0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ToFilesReport(PartitionsReport[FilesPartition]):
    """What a copy did, or would do.

    Attributes:
        to: The directory of the files.
        removed: How many orphans `remove_orphans` has deleted, or would delete.
    """

    to: str = ""
    removed: int = 0

    def _partition_labels(self, partition: FilesPartition) -> dict[str, object]:
        labels: dict[str, object] = {
            "Topic": partition.topic,
            "Partition": partition.partition,
            "StartOffset": partition.start_offset,
            "EndOffset": partition.end_offset,
        }
        if not self.dry_run:
            labels |= {
                "Records": f"{partition.records:,}",
                "Files": partition.files,
                "Bytes": f"{partition.size_bytes:,}",
            }
        return labels

    def _total_labels(self) -> dict[str, object]:
        offsets = sum(part.end_offset - part.start_offset for part in self.partitions)
        removed = {"Removed": self.removed} if self.removed else {}
        if self.dry_run:
            return {"WouldCopyOffsets": f"{offsets:,}", **removed}
        return {
            "Records": f"{self._sum('records'):,}",
            "Files": self._sum("files"),
            "Bytes": f"{self._sum('size_bytes'):,}",
            **removed,
        }

    def _json_totals(self) -> Mapping[str, object]:
        return {
            "to": without_passwords(self.to),
            "records": self._sum("records"),
            "files": self._sum("files"),
            "sizeBytes": self._sum("size_bytes"),
            "removed": self.removed,
        }

    def _sum(self, field: str) -> int:
        return sum(getattr(part, field) for part in self.partitions)
