"""Commits that were put in the place of lost ones below a checkpoint: no load reads them.

The rule (docs/commit-protocol.md, Lost commits): a load begins at the newest checkpoint and reads
no commit at or below it. So a commit that a writer with an older state put at a lost number there
is acknowledged, and never read. The checkpoint remembers the write ids of the last 10,000 commits:
a file at one of these versions that has another write id is such a commit. Versions at or below the
last expired version may have expired and been used again, so they show nothing.
"""

from __future__ import annotations

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import commit_name, parse_commit_version
from klog.connector.commit_log.lost_commit_errors import ForkedCommit
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.parallel_reads import read_in_order
from klog.errors import KlogError


def find_forked_commits(log: CommitLog, state: TopicState) -> list[ForkedCommit | KlogError]:
    """Compare the commits at or below a state's checkpoint with the write ids that it remembers.

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
    write_ids = {version: write_id for write_id, version in state.writes.items() if version <= top}
    start = max(min(write_ids, default=0), log.last_expired_version() + 1)
    names = log.store.names_after(log.paths.commits, commit_name(start - 1) if start else "")
    listed_versions = (parse_commit_version(name) for name in names)
    versions = sorted(version for version in listed_versions if version in write_ids)

    def compare(version: int) -> ForkedCommit | KlogError | None:
        try:
            commit = log.read_without_sidecar(version)
        except KlogError as exc:
            return exc
        if commit is None or commit.write_id == write_ids[version]:
            return None
        path = log.paths.commit(version)
        try:
            return ForkedCommit(path, log.read(version) or commit, write_ids[version], source)
        except KlogError as exc:
            return ForkedCommit(path, commit, write_ids[version], source, str(exc))

    results = zip(
        versions, read_in_order(compare, versions, log.store.max_parallel_reads), strict=True
    )
    forked = [(version, commit) for version, commit in results if commit is not None]
    # After the reads: a commit at or below it may have expired meanwhile.
    last_expired = log.last_expired_version()
    return [commit for version, commit in forked if version > last_expired]
