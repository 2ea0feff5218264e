"""Which commits of a topic's whole log are lost, those that no load needs too.

The rule (docs/commit-protocol.md, Lost commits): a listing alone proves nothing. The commits are
listed, each number of a gap is read twice, and then the boundary is listed: what is absent above it
is lost. A number far above the others may be that of a bogus file, so of a long gap only the first
numbers are read, and what is told is a range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klog.connector.commit_log.checkpoint_store import complete_checkpoints
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import parse_commit_version
from klog.connector.commit_log.lost_commit_errors import Evidence
from klog.connector.store.parallel_reads import read_in_order

MAX_READS = 1000
"""So many numbers of one gap are read; the others are taken for what the listing says of them."""


@dataclass(frozen=True, slots=True)
class LostCommits:
    """Lost commits with neighbouring versions, `first` to `last`, and what shows that they were."""

    first_version: int
    last_version: int
    evidence: Evidence

    def __str__(self) -> str:
        """Return the range in words."""
        return (
            f"{self.first_version}"
            if self.first_version == self.last_version
            else f"{self.first_version} to {self.last_version}"
        )


def find_lost_commits(log: CommitLog) -> list[LostCommits]:
    """Return the lost commits of a topic's log, lowest first."""
    start = log.last_expired_version() + 1  # It only rises: what is below is not lost.
    names = log.store.names_after(log.paths.commits, "")
    versions = {version for name in names if (version := parse_commit_version(name)) is not None}
    top = max(versions, default=-1)
    evidence = Evidence(top, log.paths.commit(max(top, 0)))
    newest = next((name for name, _ in complete_checkpoints(log)), None)
    if newest is not None and newest.version > top:
        evidence = Evidence(newest.version, log.paths.checkpoint(newest))
    lost = [
        one
        for first, last in _gaps(sorted(one for one in versions if one >= start), start, evidence)
        for one in _absent(log, first, last)
    ]
    boundary = log.last_expired_version()
    return [
        LostCommits(max(first, boundary + 1), last, evidence)
        for first, last in lost
        if last > boundary
    ]


def _gaps(versions: list[int], start: int, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Return the ranges of numbers that a listing does not show."""
    for version in [*versions, evidence.version + 1]:
        if version > start:
            yield start, version - 1
        start = max(start, version + 1)


def _absent(log: CommitLog, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Read the numbers of a gap, and return the ranges of those that two reads do not find."""
    end = min(last, first + MAX_READS - 1)
    numbers = range(first, end + 1)
    begin: int | None = None
    for version, found in zip(
        numbers,
        read_in_order(log.read_without_sidecar, numbers, log.store.max_parallel_reads),
        strict=True,
    ):
        is_absent = found is None and log.read_without_sidecar(version) is None
        if is_absent and begin is None:
            begin = version
        elif not is_absent and begin is not None:
            yield begin, version - 1
            begin = None
    if begin is not None:
        yield begin, last
    elif last > end:
        yield end + 1, last
