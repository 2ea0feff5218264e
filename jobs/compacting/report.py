"""What a compaction did, or would do: a line a partition, and one of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from klog.jobs.choosing import camel_case, change, partitions_json
from klog.jobs.failures import FailedTopic, Failure, count, exit_code, labels
from klog.jobs.printing import labelled


@dataclass(frozen=True, slots=True)
class CompactedPartition:
    """What became of a partition; offsets of the log, ends exclusive, sizes in bytes.

    `segments`, `records` and `size_bytes` are those below `cleaned_to` before, the others after.
    `left` says why nothing was done, if nothing was; `failure` if that was a fault.
    """

    topic: str
    partition: int
    dirty_ratio: float
    cleaned_from: int
    cleaned_to: int
    segments: int = 0
    records: int = 0
    size_bytes: int = 0
    segments_after: int = 0
    records_after: int = 0
    size_bytes_after: int = 0
    left: str = ""
    failure: Failure | None = None

    @property
    def is_worked(self) -> bool:
        """Tell whether it was compacted, or would be."""
        return not self.left and self.failure is None


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What a compaction did, or would do."""

    root: str
    dry_run: bool
    partitions: tuple[CompactedPartition, ...] = ()
    seconds: float = 0.0
    failed: tuple[FailedTopic, ...] = ()

    @property
    def exit_code(self) -> int:
        """Give 1 where a partition or a topic failed."""
        return exit_code((*self.partitions, *self.failed))

    def lines(self) -> Iterator[str]:
        """Give the table: labels and values of each line, the last one of all."""
        for one in self.partitions:
            done = one.is_worked and not self.dry_run
            yield labelled(
                {
                    "Topic": one.topic,
                    "Partition": one.partition,
                    "DirtyRatio": f"{one.dirty_ratio:.3f}",
                    "CleanedTo": one.cleaned_to,
                    "Segments": change(one.segments, one.segments_after, is_done=done),
                    "Records": change(one.records, one.records_after, is_done=done),
                    "Bytes": change(one.size_bytes, one.size_bytes_after, is_done=done),
                    "Left": one.left or None,
                    **labels(one.failure),
                }
            )
        for topic in self.failed:
            yield topic.line()
        worked = [one for one in self.partitions if one.is_worked]
        total = {
            name: sum(getattr(one, name) for one in worked)
            for name in ("records", "records_after", "size_bytes", "size_bytes_after")
        }
        done = not self.dry_run
        yield labelled(
            {
                "WouldCompact" if self.dry_run else "Compacted": len(worked),
                "Records": change(total["records"], total["records_after"], is_done=done),
                "Bytes": change(total["size_bytes"], total["size_bytes_after"], is_done=done),
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
