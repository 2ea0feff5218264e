"""Which commits of a topic's whole log are lost, also those that no load needs.

The rule (docs/commit-protocol.md, Lost commits): a listing alone proves nothing. The commits are
listed, each number of a gap is read twice, and then the last expired version is read: what is
missing above it is lost. A number far above the others may be that of a bogus file, so only the
first numbers of a long gap are read, and the result is a range.
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
"""So many numbers of one gap are read; for the others the listing decides."""


@dataclass(frozen=True, slots=True)
class LostCommits:
    """Lost commits of neighbouring versions.

    Attributes:
        first_version: The first lost version.
        last_version: The last lost version.
        evidence: What shows that these commits existed.
    """

    first_version: int
    last_version: int
    evidence: Evidence

    def __str__(self) -> str:
        """Return the version, or the first and the last one."""
        return (
            f"{self.first_version}"
            if self.first_version == self.last_version
            else f"{self.first_version} to {self.last_version}"
        )


def find_lost_commits(log: CommitLog) -> list[LostCommits]:
    """Return the lost commits of a topic's log, lowest first.

    Args:
        log: The log of the topic.
    """
    start = log.last_expired_version() + 1  # It only rises: a commit below it is not lost.
    names = log.store.names_after(log.paths.commits, "")
    versions = {version for name in names if (version := parse_commit_version(name)) is not None}
    top = max(versions, default=-1)
    evidence = Evidence(top, log.paths.commit(max(top, 0)))
    newest = next((name for name, _ in complete_checkpoints(log)), None)
    if newest is not None and newest.version > top:
        evidence = Evidence(newest.version, log.paths.checkpoint(newest))
    listed_versions = sorted(version for version in versions if version >= start)
    lost_ranges = [
        lost_range
        for first, last in _gaps(listed_versions, start, evidence)
        for lost_range in _find_missing(log, first, last)
    ]
    last_expired = log.last_expired_version()
    return [
        LostCommits(max(first, last_expired + 1), last, evidence)
        for first, last in lost_ranges
        if last > last_expired
    ]


def _gaps(versions: list[int], start: int, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Yield the ranges of numbers that a listing does not show."""
    for version in [*versions, evidence.version + 1]:
        if version > start:
            yield start, version - 1
        start = max(start, version + 1)


def _find_missing(log: CommitLog, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Read the numbers of a gap, and yield the ranges of those that two reads do not find."""
    end = min(last, first + MAX_READS - 1)
    numbers = range(first, end + 1)
    begin: int | None = None
    for version, commit in zip(
        numbers,
        read_in_order(log.read_without_sidecar, numbers, log.store.max_parallel_reads),
        strict=True,
    ):
        is_missing = commit is None and log.read_without_sidecar(version) is None
        if is_missing and begin is None:
            begin = version
        elif not is_missing and begin is not None:
            yield begin, version - 1
            begin = None
    if begin is not None:
        yield begin, last
    elif last > end:
        yield end + 1, last
