"""The commits after a version, read by number, and whether one of them is lost.

The rule (docs/commit-protocol.md, Lost commits): the writer of commit n + 1 has seen n, so a
missing number below an existing one was lost at rest. It counts as lost only if something shows a
later version and two reads do not find it; the caller then lists the last expired version, which
must be below it. A listing alone proves nothing: numbers that it leaves out are read.
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
"""Reads the commit of a version; None if it is missing."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Commits without a gap.

    `lost_version` is the version after them if two reads did not find it, and `evidence` is what
    shows that it existed.
    """

    commits: list[Commit]
    lost_version: int | None = None
    evidence: Evidence | None = None


def read_by_number(read: ReadCommit, version: int) -> list[Commit]:
    """Read the commits from a version on, until one is missing.

    Args:
        read: Reads a commit.
        version: The first version.
    """
    commits: list[Commit] = []
    while (commit := read(version + len(commits))) is not None:
        commits.append(commit)
    return commits


def read_listed(
    store: ReadableStore, paths: TopicPaths, read: ReadCommit, start: int, evidence: Evidence | None
) -> Tail:
    """Read the commits from a version on: those that a listing shows, then by number.

    Args:
        store: The store of the log.
        paths: The paths of the log.
        read: Reads a commit.
        start: The first version.
        evidence: The highest version that the caller knows of, None if it knows none.
    """
    names = store.names_after(paths.commits, commit_name(start - 1) if start else "")
    versions = (parse_commit_version(name) for name in names)
    listed_version = max((version for version in versions if version is not None), default=-1)
    if evidence is None or listed_version > evidence.version:
        evidence = Evidence(listed_version, paths.commit(listed_version))
    tail = read_up_to(store, read, start, evidence)
    if tail.lost_version is not None:
        return tail
    return Tail(tail.commits + read_by_number(read, start + len(tail.commits)))


def read_up_to(store: ReadableStore, read: ReadCommit, start: int, evidence: Evidence) -> Tail:
    """Read the commits of versions that existed, in parallel.

    Args:
        store: The store of the log.
        read: Reads a commit.
        start: The first version.
        evidence: The last version, and what shows that it existed.

    Returns:
        The commits; those after the first one that two reads do not find are left out.
    """
    commits: list[Commit] = []
    while (next_version := start + len(commits)) <= evidence.version:
        for commit in read_in_order(
            read, range(next_version, evidence.version + 1), store.max_parallel_reads
        ):
            if commit is None:
                break
            commits.append(commit)
        next_version = start + len(commits)
        if next_version <= evidence.version:
            commit_again = read(next_version)
            if commit_again is None:
                return Tail(commits, next_version, evidence)
            commits.append(commit_again)
    return Tail(commits)
