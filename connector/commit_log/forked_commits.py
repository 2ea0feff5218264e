"""Commits in the place of lost ones that a checkpoint stands for: no load reads them.

The rule (docs/commit-protocol.md, Lost commits): a load begins at the newest checkpoint and reads
no commit at or below it. So a commit that a writer with an older state put at a lost number there
is acknowledged, and never read. The checkpoint remembers the write ids of the last 10,000 commits:
a file at one of these versions that has another write id is such a commit. Versions at or below
the boundary may have been cleaned and used again, so they show nothing.
"""

from __future__ import annotations

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import commit_name, parse_commit_version
from klog.connector.commit_log.lost_commit_errors import ForkedCommit
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.parallel_reads import read_in_order
from klog.errors import KlogError


def find_forked_commits(log: CommitLog, state: TopicState) -> list[ForkedCommit | KlogError]:
    """Hold the commits at or below the checkpoint that a state was loaded from to its write ids.

    Args:
        log: The topic's log.
        state: A state that was just loaded, or a checkpoint alone.

    Returns:
        By version, the commits that the checkpoint does not know, and an error that names the file
        for each that cannot be read. At most 10,000 commits are read, and no segment.
    """
    if state.checkpoint is None:
        return []
    source, top = log.paths.checkpoint(state.checkpoint), state.checkpoint.version
    known = {version: write_id for write_id, version in state.writes.items() if version <= top}
    start = max(min(known, default=0), log.last_expired_version() + 1)
    names = log.store.names_after(log.paths.commits, commit_name(start - 1) if start else "")
    listed = (parse_commit_version(name) for name in names)
    versions = sorted(version for version in listed if version in known)

    def judge(version: int) -> ForkedCommit | KlogError | None:
        try:
            found = log.read_without_sidecar(version)
        except KlogError as exc:
            return exc
        if found is None or found.write_id == known[version]:
            return None
        path = log.paths.commit(version)
        try:
            return ForkedCommit(path, log.read(version) or found, known[version], source)
        except KlogError as exc:
            return ForkedCommit(path, found, known[version], source, str(exc))

    results = zip(
        versions, read_in_order(judge, versions, log.store.max_parallel_reads), strict=True
    )
    forked = [(version, one) for version, one in results if one is not None]
    boundary = (
        log.last_expired_version()
    )  # After the reads: what it overtook may have been cleaned.
    return [one for version, one in forked if version > boundary]
