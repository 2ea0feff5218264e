"""What a merge did, or would do: a line a partition, and one of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from klog.jobs.choosing import camel_case, change, partitions_json
from klog.jobs.failures import FailedTopic, Failure, count, exit_code, labels
from klog.jobs.printing import labelled


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """What became of a partition.

    `left` says why nothing was done, if nothing was; `failure` if that was a fault.
    `size_bytes` is what was copied, `shifted` counts the segments whose offsets were written anew.
    """

    topic: str
    partition: int
    segments: int
    segments_after: int
    size_bytes: int = 0
    shifted: int = 0
    left: str = ""
    failure: Failure | None = None

    @property
    def is_worked(self) -> bool:
        """Tell whether it was merged, or would be."""
        return not self.left and self.failure is None


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge did, or would do."""

    root: str
    dry_run: bool
    partitions: tuple[MergedPartition, ...] = ()
    seconds: float = 0.0
    failed: tuple[FailedTopic, ...] = ()

    @property
    def exit_code(self) -> int:
        """Give 1 where a partition or a topic failed."""
        return exit_code((*self.partitions, *self.failed))

    def lines(self) -> Iterator[str]:
        """Give the table: labels and values of each line, the last one of all."""
        for one in self.partitions:
            yield labelled(
                {
                    "Topic": one.topic,
                    "Partition": one.partition,
                    "Segments": change(one.segments, one.segments_after, is_done=one.is_worked),
                    "Bytes": f"{one.size_bytes:,}",
                    "Shifted": one.shifted or None,
                    "Left": one.left or None,
                    **labels(one.failure),
                }
            )
        for topic in self.failed:
            yield topic.line()
        worked = [one for one in self.partitions if one.is_worked]
        yield labelled(
            {
                "WouldMerge" if self.dry_run else "Merged": len(worked),
                "Segments": change(
                    sum(one.segments for one in worked),
                    sum(one.segments_after for one in worked),
                    is_done=True,
                ),
                "Bytes": f"{sum(one.size_bytes for one in worked):,}",
                "Failed": count((*self.partitions, *self.failed)) or None,
                "Seconds": f"{self.seconds:.3f}",
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        failed = [camel_case(asdict(one)) for one in self.failed]
        return partitions_json(
            self.root, self.dry_run, self.partitions, self.seconds, failedTopics=failed
        )
