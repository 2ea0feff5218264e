"""Log expiration: delete the commits, checkpoints and parts that a newer checkpoint replaces.

The rule (docs/commit-protocol.md, Vacuum): a commit is deleted after the last expired version was
raised to it or above, on a checkpoint at or above that version that was read back complete. The
file of the last expired version names this checkpoint. A part is deleted when no checkpoint names
it and no writer can be about to: of parts up to the last expired version, only those of that
checkpoint are named again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from klog.connector.commit_log.checkpoint_store import (
    complete_checkpoints,
    list_checkpoints,
    read_last_expiration,
    retained_parts,
)
from klog.connector.commit_log.commit_history import version_at_time
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
    parse_checkpoint_name,
    parse_commit_version,
    parse_expiration_version,
    parse_sidecar_name,
)
from klog.connector.commit_log.file_size_limits import read_named
from klog.connector.commit_log.vacuum_times import LOG_RETENTION_MS
from klog.connector.store.writable_store import PutResult


def list_expired_versions(log: CommitLog) -> list[int]:
    """Return the expired commits that an interrupted expiration did not delete, lowest first.

    Args:
        log: The log of the topic.
    """
    last_expired = log.last_expired_version()
    # Commits are deleted upwards: if that of the last expired version is gone, all are.
    if last_expired < 0 or log.read_without_sidecar(last_expired) is None:
        return []
    newest = next((name for name, _ in complete_checkpoints(log)), None)
    return (
        _versions(log, last_expired)
        if newest is not None and newest.version >= last_expired
        else []
    )


def delete_commits(log: CommitLog, versions: Iterable[int]) -> None:
    """Delete commits that have expired.

    Args:
        log: The log of the topic.
        versions: Versions at or below the last expired version that is on the store.
    """
    for version in versions:
        log.store.delete(log.paths.commit(version))


def expire_log(log: CommitLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Delete commits that a checkpoint replaces and that are older than the retention.

    Args:
        log: The log of the topic.
        retention_ms: The age from which commits may expire.

    Returns:
        The last expired version: commits at or below it are gone, or may be.
    """
    plan = _read_plan(log, retention_ms)
    if plan.checkpoint is None:
        return plan.last_expired
    if plan.next_expired_version > plan.last_expired:
        if not _is_durable(log, plan.checkpoint):
            return plan.last_expired
        content = str(plan.checkpoint).encode()
        if (
            log.store.put_if_absent(log.paths.expiration(plan.next_expired_version), content)
            is PutResult.UNKNOWN
        ):
            return plan.last_expired  # The next run looks again; until then nothing may be deleted.
    last_expired = max(plan.next_expired_version, plan.last_expired)
    _delete_below(log, last_expired, plan.complete_names)
    return last_expired


def preview_expiration(log: CommitLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Return the last expired version that `expire_log` would set now; nothing is written.

    Args:
        log: The log of the topic.
        retention_ms: The age from which commits may expire.
    """
    plan = _read_plan(log, retention_ms)
    return max(plan.next_expired_version, plan.last_expired)


@dataclass(frozen=True, slots=True)
class _ExpirationPlan:
    """The last expired version now and after the expiration, and the checkpoint that allows it.

    `complete_names` are the newest complete checkpoints.
    """

    last_expired: int
    next_expired_version: int
    checkpoint: CheckpointName | None
    complete_names: list[CheckpointName]


def _read_plan(log: CommitLog, retention_ms: int) -> _ExpirationPlan:
    state, last_expired = log.load(), log.last_expired_version()
    checkpoints = list(islice(complete_checkpoints(log), 2))
    # After they were read: an expiration before that may have deleted parts of theirs since.
    is_retained = retained_parts(log)
    checkpoint = next((name for name, parts in checkpoints if all(map(is_retained, parts))), None)
    complete_names = [name for name, _ in checkpoints]
    if checkpoint is None:
        return _ExpirationPlan(last_expired, last_expired, None, complete_names)
    retention_version = version_at_time(log, state, log.clock() - retention_ms)
    return _ExpirationPlan(
        last_expired,
        min(checkpoint.version, state.version - 1, retention_version),
        checkpoint,
        complete_names,
    )


def _is_durable(log: CommitLog, name: CheckpointName) -> bool:
    """Return whether a checkpoint outlives a loss of power: its writer may have died before that.

    That it can be read does not prove it; that the store says that it exists does. A missing one
    was deleted by another expiration, on a newer checkpoint.
    """
    path = log.paths.checkpoint(name)
    return is_durable(log, path, lambda: read_named(log.store, path, name))


def is_durable(log: CommitLog, path: str, read: Callable[[], bytes]) -> bool:
    """Return whether the store says that a file exists, which it may say only of a durable one.

    Args:
        log: The log of the topic.
        path: The path of the file.
        read: Reads the bytes of the file.

    Returns:
        False also if the file is missing.
    """
    try:
        data = read()
    except FileNotFoundError:
        return False
    return log.store.put_if_absent(path, data) is not PutResult.UNKNOWN


def _delete_below(log: CommitLog, last_expired: int, complete_names: list[CheckpointName]) -> None:
    """Delete what the last expired version on the store makes superfluous, lowest first."""
    delete_commits(log, _versions(log, last_expired))
    for sidecar in filter(None, map(parse_sidecar_name, _own_names(log, log.paths.sidecars))):
        if sidecar.version <= last_expired:
            log.store.delete(log.paths.sidecar(sidecar))
    keep = {*complete_names, read_last_expiration(log).checkpoint}
    for name in filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.checkpoints))):
        if name not in keep and name < complete_names[-1]:
            log.store.delete(log.paths.checkpoint(name))
    _delete_parts(log, last_expired)
    for file_name in _own_names(log, log.paths.expirations):
        if (version := parse_expiration_version(file_name)) is not None and version < last_expired:
            log.store.delete(log.paths.expiration(version))


def _versions(log: CommitLog, last_expired: int) -> list[int]:
    """List the commits that may be deleted, lowest version first."""
    versions = map(parse_commit_version, _own_names(log, log.paths.commits))
    return sorted(
        version for version in versions if version is not None and version <= last_expired
    )


def _own_names(log: CommitLog, directory: str) -> list[str]:
    """List the names in a folder that are not links and not reached through a link."""
    return [entry.name for entry in log.entries(directory) if not entry.link]


def _delete_parts(log: CommitLog, last_expired: int) -> None:
    """Delete parts up to the last expired version that no checkpoint names."""
    names = filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.parts)))
    unused_names = {name for name in names if name.version <= last_expired}
    if unused_names:
        for _, parts in list_checkpoints(log):
            unused_names.difference_update(part.name for part in parts)
    for name in sorted(unused_names):
        log.store.delete(log.paths.part(name))
