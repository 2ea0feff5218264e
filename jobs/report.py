"""What a job did, or would do, to partitions: a line each, one a topic that failed, and one of all.

The rule: a report says what it says of a partition and of all; how the lines follow each other, the
exit code and the form for machines are the same for each job that leaves what fails as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from klog.jobs.choosing import camel_case, partitions_json
from klog.jobs.failures import FailedTopic, MayFail, count, exit_code, labels
from klog.jobs.printing import labelled

Partition = TypeVar("Partition", bound=MayFail)
"""A dataclass that says what became of a partition."""


@dataclass(frozen=True, slots=True)
class PartitionsReport(ABC, Generic[Partition]):
    """What became of partitions, and the topics of which nothing was done."""

    root: str
    dry_run: bool
    partitions: tuple[Partition, ...] = ()
    seconds: float = 0.0
    failed: tuple[FailedTopic, ...] = ()

    @property
    def exit_code(self) -> int:
        """Give 1 where a partition or a topic failed."""
        return exit_code((*self.partitions, *self.failed))

    def lines(self) -> Iterator[str]:
        """Give the table: labels and values of each line, the last one of all."""
        for one in self.partitions:
            yield labelled({**self._said_of(one), **labels(one.failure)})
        for topic in self.failed:
            yield topic.line()
        yield labelled(
            {
                **self._said_of_all(),
                "Failed": count((*self.partitions, *self.failed)) or None,
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        failed = [camel_case(asdict(one)) for one in self.failed]
        more = {**self._figures(), "failedTopics": failed}
        return partitions_json(self.root, self.dry_run, self.partitions, self.seconds, **more)

    @abstractmethod
    def _said_of(self, one: Partition) -> dict[str, object]:
        """Give labels and values of a partition's line, but for why it failed."""

    @abstractmethod
    def _said_of_all(self) -> dict[str, object]:
        """Give those of the line of all, but for how many failed and the time."""

    def _figures(self) -> Mapping[str, object]:
        """Give what the form for machines has besides."""
        return {}
