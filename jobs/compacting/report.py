"""What a compaction did, or would do: a line a partition, and one of all."""

from __future__ import annotations

from dataclasses import dataclass

from klog.jobs.choosing import change
from klog.jobs.failures import Failure
from klog.jobs.report import PartitionsReport


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


class CompactReport(PartitionsReport[CompactedPartition]):
    """What a compaction did, or would do."""

    __slots__ = ()

    def _said_of(self, one: CompactedPartition) -> dict[str, object]:
        done = one.is_worked and not self.dry_run
        return {
            "Topic": one.topic,
            "Partition": one.partition,
            "DirtyRatio": f"{one.dirty_ratio:.3f}",
            "CleanedTo": one.cleaned_to,
            "Segments": change(one.segments, one.segments_after, is_done=done),
            "Records": change(one.records, one.records_after, is_done=done),
            "Bytes": change(one.size_bytes, one.size_bytes_after, is_done=done),
            "Left": one.left or None,
        }

    def _said_of_all(self) -> dict[str, object]:
        worked = [one for one in self.partitions if one.is_worked]
        total = {
            name: sum(getattr(one, name) for one in worked)
            for name in ("records", "records_after", "size_bytes", "size_bytes_after")
        }
        done = not self.dry_run
        return {
            "WouldCompact" if self.dry_run else "Compacted": len(worked),
            "Records": change(total["records"], total["records_after"], is_done=done),
            "Bytes": change(total["size_bytes"], total["size_bytes_after"], is_done=done),
        }
