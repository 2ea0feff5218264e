"""What an export wrote, or would write: a line for each partition, and one with the totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.jobs.shared.exit_codes import DONE
from klog.jobs.shared.report_fields import camel_case, dataclass_json
from klog.text_output import labelled, printable

_TOTALS = ("segments", "records", "size_bytes", "shifted", "ended")


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The exported part of a partition; offsets of the log, ends exclusive.

    Attributes:
        topic: The topic.
        partition: The partition.
        log_start: The log start offset.
        log_end: The log end offset.
        segments: How many segments were exported.
        records: Their records, with some below the log start.
        size_bytes: Their bytes.
        shifted: How many segments have other offsets in their files than in the log.
        ended: How many markers were added that end open transactions. The export's log end is so
            many offsets after the log's.
    """

    topic: str
    partition: int
    log_start: int
    log_end: int
    segments: int
    records: int
    size_bytes: int
    shifted: int
    ended: int = 0

    @staticmethod
    def of_partition(partition: CommittedPartition) -> ExportedPartition:
        """Return the report of a partition that would be exported; no segment is read.

        Args:
            partition: The partition, as of the exported version.
        """
        return ExportedPartition(
            partition.name.topic,
            partition.name.partition,
            partition.log_start,
            partition.log_end,
            partition.segment_count,
            int(partition.numbers("record_count").sum()),
            partition.size_bytes,
            int((partition.numbers("offset_shift") != 0).sum()),
        )


@dataclass(frozen=True, slots=True)
class ExportLogReport:
    """What an export wrote, or would write.

    Attributes:
        to: The directory of the export.
        dry_run: Whether nothing was written.
        seconds: How long the job took.
        partitions: What was exported of each partition.
    """

    to: str
    dry_run: bool
    seconds: float
    partitions: tuple[ExportedPartition, ...]

    def total(self, column: str) -> int:
        """Return the sum of a field of the partitions.

        Args:
            column: The name of a field with a number.
        """
        return sum(getattr(partition, column) for partition in self.partitions)

    @property
    def exit_code(self) -> int:
        """Return 0: an export that fails is an error."""
        return DONE

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
                    "Records": partition.records,
                    "Bytes": partition.size_bytes,
                    "Shifted": partition.shifted,
                    "Ended": partition.ended or None,
                }
            )
        verb = "Would export" if self.dry_run else "Exported"
        total = (
            f"{len(self.partitions):,} partitions, {self.total('segments'):,} segments, "
            f"{self.total('records'):,} records, {self.total('size_bytes'):,} bytes to {self.to}"
        )
        more = f", {self.total('shifted'):,} segments shifted" if self.total("shifted") else ""
        more += f", {self.total('ended'):,} transactions ended" if self.total("ended") else ""
        time = "" if self.dry_run else f" in {self.seconds:.1f} s"
        yield printable(f"{verb} {total}{more}{time}.")

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        return {
            "to": self.to,
            "dryRun": self.dry_run,
            "seconds": round(self.seconds, 3),
            **camel_case({name: self.total(name) for name in _TOTALS}),
            "partitions": [dataclass_json(partition) for partition in self.partitions],
        }
