"""What an adoption or an import did, or would do: a line a partition, and one of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.log.adoption import BrokersPartition
from klog.connector.log.entries import aborted_of
from klog.connector.log.partition import RawPartition
from klog.jobs.adopting.broker import counted_segments
from klog.jobs.choosing import partitions_json
from klog.jobs.failures import Failure, count, exit_code, labels
from klog.jobs.printing import labelled


@dataclass(frozen=True, slots=True)
class AdoptedPartition:
    """A partition as it was taken; offsets of the log, ends exclusive, sizes in bytes.

    `records` are those that a reader of committed records sees, `aborted` the transactions that
    none does. Where `left` says why nothing was done, or `failure` what failed, and in a dry run,
    they are not known.
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

    @staticmethod
    def planned(log: RawPartition, left: str = "") -> AdoptedPartition:
        """Say what of a partition would be taken."""
        counted = counted_segments(log)
        return AdoptedPartition(
            log.name.topic,
            log.name.partition,
            log.log_start,
            log.log_end,
            len(counted),
            sum(one.size_bytes for one in counted),
            sum(one.file_bytes - one.size_bytes for one in counted),
            left=left,
        )

    def done(self, taken: BrokersPartition) -> AdoptedPartition:
        """Add what was read."""
        transactions = {
            (producer, last) for one in taken.segments for producer, _, last in aborted_of(one)
        }
        records = sum(one["record_count"] for one in taken.segments)
        return replace(self, records=records, aborted=len(transactions))


@dataclass(frozen=True, slots=True)
class AdoptReport:
    """What was adopted or imported, or would be."""

    root: str
    dry_run: bool
    done_word: str
    partitions: tuple[AdoptedPartition, ...] = ()
    note: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Give 1 where a partition failed."""
        return exit_code(self.partitions)

    def lines(self) -> Iterator[str]:
        """Give the table: a line each, the last one of all."""
        for one in self.partitions:
            yield labelled(
                {
                    "Topic": one.topic,
                    "Partition": one.partition,
                    "LogStart": one.log_start,
                    "LogEnd": one.log_end,
                    "Segments": one.segments,
                    "Records": None if one.records is None else f"{one.records:,}",
                    "Bytes": f"{one.size_bytes:,}",
                    "TornBytes": f"{one.torn_bytes:,}" if one.torn_bytes else None,
                    "Aborted": one.aborted or None,
                    "Left": one.left or None,
                    **labels(one.failure),
                }
            )
        taken = [one for one in self.partitions if not (one.left or one.failure)]
        yield labelled(
            {
                f"Would{self.done_word}" if self.dry_run else f"{self.done_word}ed": len(taken),
                "Segments": f"{sum(one.segments for one in taken):,}",
                "Records": None if self.dry_run else f"{sum(one.records or 0 for one in taken):,}",
                "Bytes": f"{sum(one.size_bytes for one in taken):,}",
                "Failed": count(self.partitions) or None,
                "Seconds": f"{self.seconds:.3f}",
                "Note": self.note or None,
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        return partitions_json(
            self.root, self.dry_run, self.partitions, self.seconds, note=self.note
        )
