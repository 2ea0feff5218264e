"""What is wrong with a topic: where it is, what it is, and what to do next.

The rule: everything that is wrong is reported, and no finding hides another. Of one kind in one
file the first `MAX_OF_A_KIND` are reported one by one and the rest is counted, so a file full of
damage does not fill the memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_OF_A_KIND = 1000

_RESTORE = "restore the file from a copy, or read around these offsets"
_INDEX = "restore the file from a copy; readers notice such an index and use the log, only slower"
_REPORT = "leave the root unchanged, see with `klog history` which job committed it, and report it"
NEXT_STEPS = {
    "log": "do what the finding says, or restore the file that it names from a copy",
    "above": "restore the last commits of the topic from a copy",
    "lost": "restore the commits from a copy, or see what `klog repair` can do",
    "fork": "copy this file and its segments elsewhere, before log expiration and vacuum delete "
    "them; replace this file with the lost commit from a copy, or delete this file and see what "
    "`klog repair` can do; then append the records of the segments again",
    "checkpoint": "restore it and its parts from a copy to read earlier versions again",
    "missing": "restore the file from a copy; vacuum deletes no file that a commit needs",
    "unreadable": "fix what the store reports, then verify again",
    "size": _RESTORE,
    "checksum": _RESTORE,
    "frame": _RESTORE,
    "crc": _RESTORE,
    "magic": _RESTORE,
    "header": _RESTORE,
    "offset": _RESTORE,
    "epoch": _RESTORE,
    "records": f"{_RESTORE}; if the copy is the same, its writer was at fault: report it",
    "entry": f"compare the file with a copy; if they are the same, {_REPORT}",
    "aborted": f"compare `aborted` of the commit with the control batches; {_REPORT}",
    "index": _INDEX,
    "timeindex": _INDEX,
    "gap": _REPORT,
    "overlap": _REPORT,
    "key": f"compact the topic again; {_REPORT}",
    "sequence": f"look for records that are missing or doubled there; {_REPORT}",
}
"""What to do, by kind of finding; docs/verify.md says what each kind means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    A field that does not apply is None. For example, a finding about a topic's log has no
    partition, and one between two segments has no position.

    Attributes:
        topic: The topic.
        partition: The partition.
        file: The path of the file, below the root.
        kind: The kind of the finding (docs/verify.md).
        reason: What is wrong.
        position: The position in the file, in bytes.
        offset: The offset in the log.
        other_step: How to go on without what is lost.
    """

    topic: str
    partition: int | None
    file: str | None
    kind: str
    reason: str
    position: int | None = None
    offset: int | None = None
    other_step: str | None = None

    @property
    def next_step(self) -> str:
        """Return what to do."""
        step = NEXT_STEPS[self.kind]
        return step if not self.other_step else f"{step}; to go on without it, {self.other_step}"

    def as_json(self) -> dict[str, object]:
        """Return the finding for machines."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "file": self.file,
            "kind": self.kind,
            "what": self.reason,
            "position": self.position,
            "offset": self.offset,
            "nextStep": self.next_step,
        }


@dataclass(slots=True)
class Findings:
    """Collects the findings of one segment."""

    topic: str
    partition: int
    file: str
    _findings: list[Finding] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _last_positions: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        reason: str,
        position: int | None = None,
        offset: int | None = None,
        file: str | None = None,
    ) -> None:
        """Add a finding, unless the last one of its kind is at the same position.

        Args:
            kind: A key of `NEXT_STEPS`.
            reason: What is wrong.
            position: The position in the file.
            offset: The offset of the log.
            file: The file; by default the segment's log.
        """
        if position is not None and self._last_positions.get(kind) == position:
            return
        if position is not None:
            self._last_positions[kind] = position
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] <= MAX_OF_A_KIND:
            name = self.file if file is None else file
            self._findings.append(
                Finding(self.topic, self.partition, name, kind, reason, position, offset)
            )

    def has(self, *kinds: str) -> bool:
        """Return whether there is a finding of any of these kinds."""
        return any(kind in self._counts for kind in kinds)

    def collected(self) -> tuple[Finding, ...]:
        """Return the findings in the order in which they were added, and counts of the rest."""
        counts = [
            Finding(
                self.topic, self.partition, self.file, kind, f"and {count - MAX_OF_A_KIND:,} more"
            )
            for kind, count in self._counts.items()
            if count > MAX_OF_A_KIND
        ]
        return (*self._findings, *counts)
