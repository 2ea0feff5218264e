"""The commits behind a version, read by number, and whether one of them is lost.

The rule (docs/commit-protocol.md, Lost commits): who commits n + 1 has seen n, so a number that is
absent below one that was made was lost at rest. It is lost only when something shows a later
version, and two reads say that it is absent; the caller then lists the boundary, which has to be
below it. A listing alone proves nothing: what it leaves out is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import TopicPaths, commit_name, parse_commit_version
from klog.connector.commit_log.lost_commit_errors import Evidence
from klog.connector.store.parallel_reads import read_in_order
from klog.connector.store.readable_store import ReadableStore

ReadCommit = Callable[[int], Commit | None]
"""Reads the commit of a version; None if it is not there."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Commits without a gap; `lost` is the version that two reads did not find behind them.

    `evidence` is what shows that it was there.
    """

    commits: list[Commit]
    lost_version: int | None = None
    evidence: Evidence | None = None


def read_by_number(read: ReadCommit, version: int) -> list[Commit]:
    """Read the commits from a version on, until one is not there."""
    commits: list[Commit] = []
    while (commit := read(version + len(commits))) is not None:
        commits.append(commit)
    return commits


def read_listed(
    store: ReadableStore, paths: TopicPaths, read: ReadCommit, start: int, evidence: Evidence | None
) -> Tail:
    """Read the commits from `start` on: those that a listing shows, then by number.

    `evidence` is what the caller knows of later versions, if anything.
    """
    names = store.names_after(paths.commits, commit_name(start - 1) if start else "")
    versions = (parse_commit_version(name) for name in names)
    listed = max((version for version in versions if version is not None), default=-1)
    if evidence is None or listed > evidence.version:
        evidence = Evidence(listed, paths.commit(listed))
    commits: list[Commit] = []
    while (upcoming := start + len(commits)) <= evidence.version:
        for commit in read_in_order(
            read, range(upcoming, evidence.version + 1), store.max_parallel_reads
        ):
            if commit is None:
                break
            commits.append(commit)
        upcoming = start + len(commits)
        if upcoming <= evidence.version:
            again = read(upcoming)
            if again is None:
                return Tail(commits, upcoming, evidence)
            commits.append(again)
    return Tail(commits + read_by_number(read, start + len(commits)))
