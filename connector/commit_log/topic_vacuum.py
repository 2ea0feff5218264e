"""Vacuum a topic: delete orphan files in two rounds (docs/commit-protocol.md, Vacuum).

The rule: `free` deletes what the commits on the store allow, before anything is written; `finish`
commits a higher vacuum version, and deletes what that allows. If the store has no room for this
commit, the indexes of removed segments make room: a segment can be read without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit_builders import set_vacuum_version
from klog.connector.commit_log.commit_expiration import is_durable
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES
from klog.connector.commit_log.orphan_files import (
    OrphanFiles,
    find_orphan_files,
    next_vacuum_version,
)
from klog.connector.commit_log.past_retention import removed_file_retention_ms
from klog.connector.commit_log.snapshot_leases import delete_expired_leases
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.vacuum_times import WRITER_GRACE_MS
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    LostCommitError,
)


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """What the second step of a vacuum commits, by what the first one read.

    Attributes:
        state: The state of the topic.
        vacuum_version: The new vacuum version.
        purge: Removed segments whose files are gone.
        traces: Files of versions above the last commit, and their versions.
        waiting_indexes: Indexes that may be deleted if there is no room for the commit.
    """

    state: TopicState
    vacuum_version: int
    purge: Sequence[str]
    traces: Mapping[str, int]
    waiting_indexes: OrphanFiles


class Vacuum:
    """A vacuum of a topic in two steps, which knows what it has deleted if a step fails."""

    def __init__(
        self, log: CommitLog, grace_ms: int | None = None, *, discard_lost: bool = False
    ) -> None:
        """Take the log; nothing is read yet.

        Args:
            log: The log of the topic.
            grace_ms: How long writers may take, and a removed segment stays for readers; None for
                a day, and for what the topic's config says.
            discard_lost: Commits that were lost at the end of the log are not to be restored.
        """
        self._log, self._grace_ms, self._discard_lost = log, grace_ms, discard_lost
        self._writer_grace_ms = WRITER_GRACE_MS if grace_ms is None else grace_ms
        self._deleted = OrphanFiles((), ())

    @property
    def deleted(self) -> OrphanFiles:
        """Return the files that were deleted so far."""
        return self._deleted

    def free(self) -> VacuumPlan:
        """Delete what the commits on the store allow: it needs no space.

        Returns:
            What `finish` commits.
        """
        log = self._log
        state = log.load()
        scan = find_orphan_files(log, self._grace_ms, discard_lost=self._discard_lost)
        retention_ms = removed_file_retention_ms(state, self._grace_ms)
        aged_rows = state.removed.filter(
            pc.less_equal(state.removed["timestamp_ms"], log.clock() - retention_ms)
        )
        # Removed segments whose files an earlier vacuum has deleted need not be known any more,
        # after the grace: a store may list a file late, and an unknown one would be taken for an
        # orphan. The state is older than the listing: the files of its segments had been written.
        purge = [file for file in aged_rows["file"].to_pylist() if file not in scan.segments]
        vacuum_version = next_vacuum_version(log, state, self._grace_ms)
        traces, indexes = scan.files.traces, scan.waiting_indexes
        plan = VacuumPlan(scan.state, vacuum_version, purge, traces, indexes)
        self._deleted = OrphanFiles((), (), traces=plan.traces, waiting=scan.files.waiting)
        self._delete(scan.files, scan.state)
        return plan

    def finish(self, plan: VacuumPlan, commit_info: CommitInfo) -> None:
        """Raise the vacuum version, and delete what that allows.

        Args:
            plan: What `free` returned.
            commit_info: The write id, operation and engine of the commit.

        Raises:
            LostCommitError: Files show that the last commits were lost. Nothing is committed in
                their place.
        """
        log = self._log
        if plan.traces and not self._discard_lost:
            file, version = max(plan.traces.items(), key=lambda trace: trace[1])
            raise LostCommitError(
                f"{log.paths.data(file)}: the log ends at version {plan.state.version}, and this "
                f"file shows that version {version} was made: its last commits are lost. No file "
                f"without a commit was deleted. Restore the commits of {log.paths.commits} from a "
                "copy, or give --discard-lost if they are not to come back"
            )
        build = set_vacuum_version(plan.vacuum_version, plan.purge)
        try:
            log.commit(plan.state, build, commit_info)
        except (CommitConflictError, CommitStateUnknownError, LostCommitError):
            raise
        except KlogError:
            if not plan.waiting_indexes.files:
                raise
            self._delete(plan.waiting_indexes, plan.state)
            log.commit(plan.state, build, commit_info)
        scan = find_orphan_files(log, self._grace_ms, discard_lost=self._discard_lost)
        self._delete(scan.files, scan.state)
        delete_expired_leases(log, log.clock() - self._writer_grace_ms)

    def _delete(self, orphans: OrphanFiles, state: TopicState) -> None:
        """Delete files that a state allows to delete, if its last commit is durable.

        Another's commit may be read before it is, and a loss of power may then undo it.
        """
        deleted: dict[str, int] = {}
        last_commit = self._log.paths.commit(state.version)
        if orphans.files and not is_durable(
            self._log, last_commit, lambda: self._log.store.read(last_commit, MAX_COMMIT_BYTES)
        ):
            return
        try:
            for file, size_bytes in orphans.files.items():
                self._log.store.delete(self._log.paths.data(file))
                deleted[file] = size_bytes
        finally:
            self._deleted = self._deleted.joined(orphans.only(deleted))


def vacuum(
    log: CommitLog,
    commit_info: CommitInfo,
    grace_ms: int | None = None,
    *,
    discard_lost: bool = False,
) -> OrphanFiles:
    """Raise the vacuum version, and delete the topic's orphan files.

    Args:
        log: The log of the topic.
        commit_info: The write id, operation and engine of the commit.
        grace_ms: How long writers may take, and a removed segment stays for readers; None for a
            day, and for what the topic's config says.
        discard_lost: Commits that were lost at the end of the log are not to be restored.

    Returns:
        The files that were deleted.

    Raises:
        LostCommitError: Files show that the last commits were lost.
    """
    run = Vacuum(log, grace_ms, discard_lost=discard_lost)
    run.finish(run.free(), commit_info)
    return run.deleted


def preview_vacuum(
    log: CommitLog, grace_ms: int | None = None, *, discard_lost: bool = False
) -> OrphanFiles:
    """Return the files that `vacuum` would delete now; nothing is written.

    Args:
        log: The log of the topic.
        grace_ms: How long writers may take, and a removed segment stays for readers; None for a
            day, and for what the topic's config says.
        discard_lost: Commits that were lost at the end of the log are not to be restored.
    """
    state = log.load()
    vacuum_version = next_vacuum_version(log, state, grace_ms)
    return find_orphan_files(log, grace_ms, vacuum_version, discard_lost=discard_lost).files
