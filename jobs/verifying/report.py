"""What a verification found: a line a finding, and one that counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from klog.errors import without_passwords
from klog.jobs.command import DONE, REFUSED
from klog.jobs.printing import labelled
from klog.jobs.verifying.findings import Finding


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was verified and what was found.

    `versions` are those of the topics' logs. `moved_on` counts files that were gone when they were
    looked at, and by then no part of the topic any more.
    """

    root: str
    fast: bool
    versions: Mapping[str, int] = field(default_factory=dict)
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    moved_on: int = 0
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Give 1 where anything was found."""
        return REFUSED if self.findings else DONE

    def lines(self) -> Iterator[str]:
        """Give the table: labels and values of each line, the findings first."""
        for one in self.findings:
            partition = "" if one.partition is None else f"-{one.partition}"
            yield labelled(
                {
                    "Finding": one.kind,
                    "Partition" if partition else "Topic": f"{one.topic}{partition}",
                    "File": one.file,
                    "Position": one.position,
                    "Offset": one.offset,
                    "What": one.what,
                    "Next": one.next_step,
                }
            )
        yield labelled(
            {
                "Topics": len(self.versions),
                "Partitions": self.partitions,
                "Segments": self.segments,
                "Batches": self.batches,
                "Records": self.records,
                "Bytes": self.size_bytes,
                "MovedOn": self.moved_on or None,
                "Findings": len(self.findings),
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        findings = [{**asdict(one), "nextStep": one.next_step} for one in self.findings]
        return {
            "root": without_passwords(self.root),
            "fast": self.fast,
            "topics": dict(self.versions),
            "partitions": self.partitions,
            "segments": self.segments,
            "batches": self.batches,
            "records": self.records,
            "bytes": self.size_bytes,
            "movedOn": self.moved_on,
            "findings": findings,
            "seconds": round(self.seconds, 3),
        }
