"""Vacuum one topic, as a task.

The rule: `connector/commit_log/orphan_files.py` and `commit_expiration.py` decide which files may
be deleted. Files that need no commit go first, so a full disk gets room for the commit. If the
vacuum of a topic fails, the report still lists what was deleted before; the next run continues.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from klog.connector.commit_log import commit_expiration, topic_vacuum
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.lost_commit_traces import find_lost_commit_traces
from klog.connector.commit_log.orphan_files import OrphanFiles
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.errors import CommitStateUnknownError, KlogError, with_context
from klog.jobs.shared.job_failures import discarding_step
from klog.jobs.vacuuming.vacuum_report import VacuumedTopic


@dataclass(frozen=True, slots=True)
class VacuumTask:
    """A topic to be vacuumed; `is_named` if the caller named it."""

    root: str
    storage: StorageOptions
    topic: str
    grace_ms: int | None
    log_retention_ms: int | None
    dry_run: bool
    is_named: bool
    discard_lost: bool


def vacuum_topic(task: VacuumTask) -> VacuumedTopic | None:
    """Vacuum a topic; if one that was not named fails, its report has the error.

    Args:
        task: The topic.

    Returns:
        What is deleted; None if the topic has no commit yet, only a folder.

    Raises:
        KlogError: A named topic failed before anything was deleted.
        CommitStateUnknownError: It is not known whether the store took the commit.
    """
    try:
        root = open_klog_root(task.root, task.storage)
        topic = _vacuum(root, task)
        if topic is None and task.is_named:
            root.load(root.log_to_read(task.topic))  # raises
        return topic
    except CommitStateUnknownError:
        raise
    except KlogError as exc:
        if task.is_named:
            raise
        return VacuumedTopic(task.topic, error=str(exc))


def _vacuum(root: KlogRoot, task: VacuumTask) -> VacuumedTopic | None:
    log = root.log_to_read(task.topic) if task.dry_run else root.log_to_write(task.topic)
    if log.load().version < 0:
        return _topic_without_commits(log)
    if task.dry_run:
        commits = len(commit_expiration.list_expired_versions(log)) - log.last_expired_version()
        commits += commit_expiration.preview_expiration(log, task.log_retention_ms)
        files = topic_vacuum.preview_vacuum(log, task.grace_ms, discard_lost=task.discard_lost)
        return VacuumedTopic(task.topic, files, commits)
    return _delete(log, task)


def _topic_without_commits(log: CommitLog) -> VacuumedTopic | None:
    """Return the report of a topic that has lost all its commits; None if it never had one."""
    above = find_lost_commit_traces(log)
    if not above:
        return None
    error = (
        f"{log.paths.commits}: there is no commit, and files show that version "
        f"{max(above.values())} was made: the commits are lost, and nothing was deleted. Restore "
        f"them from a copy. To go on without them, {discarding_step(log.paths.topic, -1)}"
    )
    return VacuumedTopic(log.paths.topic, OrphanFiles((), (), traces=above), error=error)


def _delete(log: CommitLog, task: VacuumTask) -> VacuumedTopic:
    """Delete what needs no commit, then commit, then delete the rest."""
    vacuum = topic_vacuum.Vacuum(log, task.grace_ms, discard_lost=task.discard_lost)
    commits, first_version = 0, log.last_expired_version()
    try:
        plan = vacuum.free()
        commits = commit_expiration.delete_expired_commits(log)
        vacuum.finish(plan, CommitInfo(random_uuid(), "vacuum", this_engine()))
        commits += commit_expiration.expire_log(log, task.log_retention_ms) - first_version
    except KlogError as exc:
        topic = VacuumedTopic(task.topic, vacuum.deleted, commits)
        has_deleted = bool(commits or vacuum.deleted.files)
        if vacuum.deleted.traces and not has_deleted:
            return replace(topic, error=str(exc))
        if not has_deleted:
            raise
        error = with_context(
            exc,
            f"{exc}. Before that, this vacuum deleted {topic.total()}: run it again to delete "
            "the rest",
        )
        if isinstance(exc, CommitStateUnknownError):
            raise error from exc
        return replace(topic, error=str(error))
    return VacuumedTopic(task.topic, vacuum.deleted, commits)
