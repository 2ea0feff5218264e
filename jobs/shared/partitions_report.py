"""The report of a job that works partition by partition, and goes on if one fails.

The rule: there is a line for each partition, one for each topic that failed and a last one with the
totals. A job's own report says which fields these lines have; the rest is the same for all jobs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from klog.jobs.shared.exit_codes import MayFail, count_failures, exit_code_of
from klog.jobs.shared.job_failures import FailedTopic, failure_labels
from klog.jobs.shared.report_fields import partitions_json
from klog.text_output import labelled

Partition = TypeVar("Partition", bound=MayFail)
"""A dataclass with what the job did, or would do, to one partition."""


@dataclass(frozen=True, slots=True)
class PartitionsReport(ABC, Generic[Partition]):
    """What a job did, or would do.

    Attributes:
        root: The root, as the caller gave it.
        dry_run: Whether nothing was written.
        partitions: What happened to each partition.
        seconds: How long the job took.
        failed: The topics that the job could not read.
    """

    root: str
    dry_run: bool
    partitions: tuple[Partition, ...] = ()
    seconds: float = 0.0
    failed: tuple[FailedTopic, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return 1 if a partition or a topic failed, else 0."""
        return exit_code_of((*self.partitions, *self.failed))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report: labels and values, the totals last."""
        for partition in self.partitions:
            yield labelled(
                {**self._partition_labels(partition), **failure_labels(partition.failure)}
            )
        for topic in self.failed:
            yield topic.line()
        yield labelled(
            {
                **self._total_labels(),
                "Failed": count_failures((*self.partitions, *self.failed)) or None,
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        failed = [topic.as_json() for topic in self.failed]
        more = {**self._json_totals(), "failedTopics": failed}
        return partitions_json(self.root, self.dry_run, self.partitions, self.seconds, **more)

    @abstractmethod
    def _partition_labels(self, partition: Partition) -> dict[str, object]:
        """Return the fields of a partition's line, without those of its failure."""

    @abstractmethod
    def _total_labels(self) -> dict[str, object]:
        """Return the fields of the last line, without the number of failures and the time."""

    def _json_totals(self) -> Mapping[str, object]:
        """Return what else the report has for machines."""
        return {}
