"""What a verification found: a line for each finding, and one that counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.jobs.shared.exit_codes import DONE, REFUSED
from klog.jobs.verifying.findings import Finding
from klog.text_output import labelled
from klog.url_secrets import without_passwords


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was verified, and what was found.

    Attributes:
        root: The root, as the caller gave it.
        fast: Whether only headers were read.
        versions: By topic the version that was verified.
        partitions: How many partitions were verified.
        segments: How many segments.
        batches: How many batches.
        records: How many records.
        size_bytes: How many bytes.
        moved_on: How many files were missing because a commit had removed them meanwhile. They are
            not findings.
        findings: What is wrong.
        seconds: How long the job took.
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
        """Return 1 if there is a finding, else 0."""
        return REFUSED if self.findings else DONE

    def lines(self) -> Iterator[str]:
        """Yield a line for each finding, and one with the totals."""
        for finding in self.findings:
            partition = "" if finding.partition is None else f"-{finding.partition}"
            yield labelled(
                {
                    "Finding": finding.kind,
                    "Partition" if partition else "Topic": f"{finding.topic}{partition}",
                    "File": finding.file,
                    "Position": finding.position,
                    "Offset": finding.offset,
                    "What": finding.reason,
                    "Next": finding.next_step,
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
        """Return the report for machines, in camelCase."""
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
            "findings": [finding.as_json() for finding in self.findings],
            "seconds": round(self.seconds, 3),
        }
