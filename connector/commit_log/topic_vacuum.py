"""Vacuum a topic."""

from __future__ import annotations

import pyarrow.compute as pc

from klog.connector.commit_log.commit_builders import set_vacuum_version
from klog.connector.commit_log.commit_expiration import is_durable
from klog.connector.commit_log.commit_history import version_at_time
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES
from klog.connector.commit_log.orphan_files import READER_GRACE_MS, OrphanFiles, find_orphan_files
from klog.connector.commit_log.snapshot_leases import delete_expired_leases
from klog.errors import LostCommitError


class Vacuum:
    """A vacuum of a topic in two steps: `deleted` is what has gone so far, whatever ends it."""

    def __init__(
        self, log: CommitLog, grace_ms: int = READER_GRACE_MS, *, discard_lost: bool = False
    ) -> None:
        """Take the log; nothing is read yet.

        With `discard_lost`, commits that were lost at the end of the log are not to come back.
        """
        self._log, self._grace_ms, self._discard_lost = log, grace_ms, discard_lost
        self.deleted = OrphanFiles((), ())

    def free(self) -> None:
        """Delete what the commits on the store allow: it takes no space."""
        log = self._log
        state = log.load()
        found = find_orphan_files(log, self._grace_ms, discard_lost=self._discard_lost)
        aged = state.removed.filter(
            pc.less_equal(state.removed["timestamp_ms"], log.clock() - self._grace_ms)
        )
        # Removed ones whose files a vacuum before this deleted need not be known any more. Not
        # before the grace ends: a store may list a file late, and an unknown one would be taken
        # for an orphan. The state is older than the listing: what it removed had been written.
        self._forget = [file for file in aged["file"].to_pylist() if file not in found.segments]
        self._horizon = max(version_at_time(log, state, log.clock() - self._grace_ms), 0)
        self._state, self._above = found.state, found.files.traces
        self.deleted = OrphanFiles((), (), traces=self._above)
        # Another's commit may be read before it is durable, and a loss of power may then undo it.
        tip = log.paths.commit(found.state.version)
        if found.files.files and is_durable(
            log, tip, lambda: log.store.read(tip, MAX_COMMIT_BYTES)
        ):
            self._delete(found.files)

    def finish(self, attempt: CommitInfo) -> None:
        """Raise the horizon, and delete what that allows.

        Raises `LostCommitError` where files show that the last commits were lost: nothing is
        committed in their place.
        """
        log = self._log
        if self._above and not self._discard_lost:
            file, version = max(self._above.items(), key=lambda one: one[1])
            raise LostCommitError(
                f"{log.paths.data(file)}: the log ends at version {self._state.version}, and this "
                f"file shows that version {version} was made: its last commits are lost. No file "
                f"without a commit was deleted. Restore the commits of {log.paths.commits} from a "
                "copy, or give --discard-lost if they are not to come back"
            )
        log.commit(self._state, set_vacuum_version(self._horizon, self._forget), attempt)
        found = find_orphan_files(log, self._grace_ms, discard_lost=self._discard_lost)
        self._delete(found.files)
        delete_expired_leases(log, log.clock() - self._grace_ms)

    def _delete(self, garbage: OrphanFiles) -> None:
        gone: dict[str, int] = {}
        try:
            for file, size_bytes in garbage.files.items():
                self._log.store.delete(self._log.paths.data(file))
                gone[file] = size_bytes
        finally:
            self.deleted = self.deleted.joined(garbage.only(gone))


def vacuum(
    log: CommitLog,
    attempt: CommitInfo,
    grace_ms: int = READER_GRACE_MS,
    *,
    discard_lost: bool = False,
) -> OrphanFiles:
    """Delete the topic's garbage, and raise the horizon; gives what was deleted."""
    run = Vacuum(log, grace_ms, discard_lost=discard_lost)
    run.free()
    run.finish(attempt)
    return run.deleted


def preview_vacuum(
    log: CommitLog, grace_ms: int = READER_GRACE_MS, *, discard_lost: bool = False
) -> OrphanFiles:
    """Find what `vacuum` would delete if it ran now; nothing is written, the horizon neither."""
    state = log.load()
    horizon = version_at_time(log, state, log.clock() - grace_ms)
    horizon = max(horizon, state.vacuum_version)
    return find_orphan_files(log, grace_ms, horizon, discard_lost=discard_lost).files
