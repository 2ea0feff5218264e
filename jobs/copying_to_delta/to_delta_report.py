"""What a copy to Delta tables did, or would do: a line for each partition, one with the totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.partitions_report import PartitionsReport


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """What was copied of a partition; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        table: The table.
        start_offset: The offset at which the table was before the job.
        end_offset: The offset at which it is now, exclusive.
        failure: What failed; None if nothing did.
    """

    topic: str
    partition: int
    table: str
    start_offset: int
    end_offset: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """What batches did to tables, as Delta has counted it.

    Attributes:
        batches: How many batches there were.
        inserted: How many rows they inserted.
        updated: How many rows they updated.
        deleted: How many rows they deleted.
    """

    batches: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: CopiedRows) -> CopiedRows:
        """Return the sum."""
        return CopiedRows(
            self.batches + other.batches,
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
        )

    @staticmethod
    def of_commit(metrics: Mapping[str, str]) -> CopiedRows:
        """Return what one commit did.

        Args:
            metrics: Its metrics, by Delta's names: those of WRITE or of MERGE.
        """
        inserted = metrics.get("numTargetRowsInserted", metrics.get("numOutputRows", "0"))
        return CopiedRows(
            1,
            int(inserted),
            int(metrics.get("numTargetRowsUpdated", "0")),
            int(metrics.get("numTargetRowsDeleted", "0")),
        )


@dataclass(frozen=True, slots=True)
class ToDeltaReport(PartitionsReport[CopiedPartition]):
    """What a copy did, or would do.

    Attributes:
        rows: What happened to the rows of all tables.
    """

    rows: CopiedRows = CopiedRows()

    def _partition_labels(self, partition: CopiedPartition) -> dict[str, object]:
        return {
            "Topic": partition.topic,
            "Partition": partition.partition,
            "Table": partition.table,
            "StartOffset": partition.start_offset,
            "EndOffset": partition.end_offset,
        }

    def _total_labels(self) -> dict[str, object]:
        offsets = sum(part.end_offset - part.start_offset for part in self.partitions)
        if self.dry_run:
            return {"WouldCopyOffsets": f"{offsets:,}"}
        return {
            "Batches": self.rows.batches,
            "Inserted": f"{self.rows.inserted:,}",
            "Updated": f"{self.rows.updated:,}",
            "Deleted": f"{self.rows.deleted:,}",
        }

    def _json_totals(self) -> Mapping[str, object]:
        return {
            "batches": self.rows.batches,
            "rowsInserted": self.rows.inserted,
            "rowsUpdated": self.rows.updated,
            "rowsDeleted": self.rows.deleted,
        }
