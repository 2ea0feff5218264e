"""What `adopt` or `import-log` did, or would do: a line for each partition, and the totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.commit_log.adoption_commit import BrokerPartition
from klog.connector.commit_log.segment_entries import aborted_transactions
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.jobs.shared.broker_logs.readable_segments import readable_segments
from klog.jobs.shared.exit_codes import count_failures, exit_code_of
from klog.jobs.shared.job_failures import Failure, failure_labels
from klog.jobs.shared.report_fields import partitions_json
from klog.text_output import labelled


@dataclass(frozen=True, slots=True)
class AdoptedPartition:
    """The report of a partition; the fields are those of the JSON report.

    Attributes:
        topic: The topic.
        partition: The partition.
        log_start: The log start offset.
        log_end: The log end offset.
        segments: How many segments the partition has.
        size_bytes: Their bytes.
        torn_bytes: The bytes of its torn tail, which klog ignores.
        records: The records that a reader of committed records gets; None in a dry run, and if
            nothing was done.
        aborted: The transactions that such a reader does not get; None as `records`.
        left: Why nothing was done; empty if something was.
        failure: What failed; None if nothing did.
    """

    topic: str
    partition: int
    log_start: int
    log_end: int
    segments: int
    size_bytes: int
    torn_bytes: int = 0
    records: int | None = None
    aborted: int | None = None
    left: str = ""
    failure: Failure | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether the partition is, or would be, adopted or imported."""
        return not self.left and self.failure is None

    @staticmethod
    def of_log(log: RawPartition, left: str = "") -> AdoptedPartition:
        """Return the report of a partition that would be taken.

        Args:
            log: The partition.
            left: Why nothing is done; empty if it is taken.
        """
        segments = readable_segments(log)
        return AdoptedPartition(
            log.name.topic,
            log.name.partition,
            log.log_start,
            log.log_end,
            len(segments),
            sum(segment.size_bytes for segment in segments),
            sum(segment.file_bytes - segment.size_bytes for segment in segments),
            left=left,
        )

    def with_commit(self, partition: BrokerPartition) -> AdoptedPartition:
        """Return the report with what was read and committed.

        Args:
            partition: The partition, as it was committed.
        """
        transactions = {
            (producer_id, last)
            for entry in partition.segments
            for producer_id, _, last in aborted_transactions(entry)
        }
        records = sum(entry["record_count"] for entry in partition.segments)
        return replace(self, records=records, aborted=len(transactions))


@dataclass(frozen=True, slots=True)
class AdoptReport:
    """What the job did, or would do.

    Attributes:
        root: The root, as the caller gave it.
        dry_run: Whether nothing was written.
        verb: `Adopt` or `Import`.
        partitions: What happened to each partition.
        note: What to know about the root, such as that there was nothing to do.
        seconds: How long the job took.
    """

    root: str
    dry_run: bool
    verb: str
    partitions: tuple[AdoptedPartition, ...] = ()
    note: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 1 if a partition failed, else 0."""
        return exit_code_of(self.partitions)

    def lines(self) -> Iterator[str]:
        """Yield a line for each partition, and one with the totals."""
        for partition in self.partitions:
            yield labelled(
                {
                    "Topic": partition.topic,
                    "Partition": partition.partition,
                    "LogStart": partition.log_start,
                    "LogEnd": partition.log_end,
                    "Segments": partition.segments,
                    "Records": None if partition.records is None else f"{partition.records:,}",
                    "Bytes": f"{partition.size_bytes:,}",
                    "TornBytes": f"{partition.torn_bytes:,}" if partition.torn_bytes else None,
                    "Aborted": partition.aborted or None,
                    "Left": partition.left or None,
                    **failure_labels(partition.failure),
                }
            )
        taken = [partition for partition in self.partitions if partition.is_taken]
        records = sum(partition.records or 0 for partition in taken)
        yield labelled(
            {
                f"Would{self.verb}" if self.dry_run else f"{self.verb}ed": len(taken),
                "Segments": f"{sum(partition.segments for partition in taken):,}",
                "Records": None if self.dry_run else f"{records:,}",
                "Bytes": f"{sum(partition.size_bytes for partition in taken):,}",
                "Failed": count_failures(self.partitions) or None,
                "Seconds": f"{self.seconds:.3f}",
                "Note": self.note or None,
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        return partitions_json(
            self.root, self.dry_run, self.partitions, self.seconds, note=self.note
        )
