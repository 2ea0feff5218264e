"""Log expiration: delete the commits, checkpoints and parts that are older than the past reaches.

The rule (docs/commit-protocol.md, Vacuum): the last expired version is raised only to the version
of a complete checkpoint, whose name its file has. Then the commits up to it are deleted, and the
checkpoints below it: the last expired version never falls, so no other process can raise it to one
of them. So every version from the last expired one on can be loaded (`past_versions.py`). Nothing
is deleted before the store says that the expiration file exists: a loss of power would undo one
that was only read, and not the deletions. A part is deleted when no checkpoint names it and no
writer can be about to: of parts up to the last expired version, only those of that checkpoint are
named again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

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
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES, read_named
from klog.connector.commit_log.past_retention import commit_retention_ms
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
    return _versions(log, last_expired) if _has_checkpoint(log, last_expired) else []


def delete_expired_commits(log: CommitLog) -> int:
    """Delete the expired commits that an interrupted expiration did not delete.

    Args:
        log: The log of the topic.

    Returns:
        How many were deleted: none if the store does not confirm the last expired version.
    """
    versions = list_expired_versions(log)
    if not versions or not _is_expiration_durable(log, log.last_expired_version()):
        return 0
    for version in versions:
        log.store.delete(log.paths.commit(version))
    return len(versions)


def expire_log(log: CommitLog, retention_ms: int | None = None) -> int:
    """Delete commits that a checkpoint replaces, and with it are older than the retention.

    Args:
        log: The log of the topic.
        retention_ms: The age from which commits may expire; None for what the topic's config says.

    Returns:
        The last expired version: commits at or below it are gone, or may be.
    """
    last_expired = log.last_expired_version()
    checkpoint = _next_checkpoint(log, last_expired, retention_ms)
    if checkpoint is None:
        if _has_checkpoint(log, last_expired):
            _delete_rest(log, last_expired)
        return last_expired
    path = log.paths.expiration(checkpoint.version)
    if (
        not _is_durable(log, checkpoint)
        or log.store.put_if_absent(path, str(checkpoint).encode()) is PutResult.UNKNOWN
    ):
        return last_expired  # The next run looks again; until then nothing may be deleted.
    _delete_below(log, checkpoint.version)
    return checkpoint.version


def preview_expiration(log: CommitLog, retention_ms: int | None = None) -> int:
    """Return the last expired version that `expire_log` would set now; nothing is written.

    Args:
        log: The log of the topic.
        retention_ms: The age from which commits may expire; None for what the topic's config says.
    """
    last_expired = log.last_expired_version()
    checkpoint = _next_checkpoint(log, last_expired, retention_ms)
    return last_expired if checkpoint is None else checkpoint.version


def _next_checkpoint(
    log: CommitLog, last_expired: int, retention_ms: int | None
) -> CheckpointName | None:
    """Return the checkpoint whose version may be the last expired one; None if none is higher.

    It is the newest complete one that is below the last version and as old as the retention.
    """
    state = log.load()
    retention_ms = commit_retention_ms(state, retention_ms)
    retention_version = version_at_time(log, state, log.clock() - retention_ms)
    max_version = min(state.version - 1, retention_version)
    for name, parts in complete_checkpoints(log, last_expired + 1, max_version):
        # After they were read: an expiration before that may have deleted parts of theirs since.
        if all(map(retained_parts(log), parts)):
            return name
    return None


def _has_checkpoint(log: CommitLog, last_expired: int) -> bool:
    """Return whether the checkpoint of the last expired version is complete.

    One that was lost may be restored, so its parts and what it replaces stay until then, or until
    the last expired version is that of another one.
    """
    if last_expired < 0:
        return False
    named = read_last_expiration(log).checkpoint
    if named is None:
        return any(True for _ in complete_checkpoints(log, last_expired))
    candidates = complete_checkpoints(log, named.version, named.version)
    return any(name == named for name, _ in candidates)


def _is_durable(log: CommitLog, name: CheckpointName) -> bool:
    """Return whether a checkpoint outlives a loss of power: its writer may have died before that.

    That it can be read does not prove it; that the store says that it exists does. A missing one
    was deleted by another expiration, on a newer checkpoint.
    """
    path = log.paths.checkpoint(name)
    return is_durable(log, path, lambda: read_named(log.store, path, name))


def _is_expiration_durable(log: CommitLog, last_expired: int) -> bool:
    """Return whether an expiration file outlives a loss of power: its writer may have died before.

    A missing one was deleted by an expiration that raised the last expired version.
    """
    path = log.paths.expiration(last_expired)
    return is_durable(log, path, lambda: log.store.read(path, MAX_SMALL_FILE_BYTES))


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


def _delete_rest(log: CommitLog, last_expired: int) -> None:
    """Delete what an interrupted expiration left."""
    paths = _paths_below(log, last_expired)
    first = next(paths, None)
    if first is not None and _is_expiration_durable(log, last_expired):
        for path in chain([first], paths):
            log.store.delete(path)


def _delete_below(log: CommitLog, last_expired: int) -> None:
    """Delete what the last expired version on the store makes superfluous, lowest first."""
    for path in _paths_below(log, last_expired):
        log.store.delete(path)


def _paths_below(log: CommitLog, last_expired: int) -> Iterator[str]:
    """List what the last expired version makes superfluous, one folder after the other.

    Parts are listed when the checkpoints that were listed before them are deleted.
    """
    for version in _versions(log, last_expired):
        yield log.paths.commit(version)
    for sidecar in filter(None, map(parse_sidecar_name, _own_names(log, log.paths.sidecars))):
        if sidecar.version <= last_expired:
            yield log.paths.sidecar(sidecar)
    for name in filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.checkpoints))):
        if name.version < last_expired:
            yield log.paths.checkpoint(name)
    for part in _unused_parts(log, last_expired):
        yield log.paths.part(part)
    for file_name in _own_names(log, log.paths.expirations):
        expired = parse_expiration_version(file_name)
        if expired is not None and expired < last_expired:
            yield log.paths.expiration(expired)


def _versions(log: CommitLog, last_expired: int) -> list[int]:
    """List the commits that may be deleted, lowest version first."""
    versions = map(parse_commit_version, _own_names(log, log.paths.commits))
    return sorted(
        version for version in versions if version is not None and version <= last_expired
    )


def _own_names(log: CommitLog, directory: str) -> list[str]:
    """List the names in a folder that are not links and not reached through a link."""
    return [entry.name for entry in log.entries(directory) if not entry.link]


def _unused_parts(log: CommitLog, last_expired: int) -> list[CheckpointName]:
    """List the parts up to the last expired version that no checkpoint names."""
    names = filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.parts)))
    unused_names = {name for name in names if name.version <= last_expired}
    if unused_names:
        for _, parts in list_checkpoints(log):
            unused_names.difference_update(part.name for part in parts)
            if not unused_names:
                break
    return sorted(unused_names)
