"""Checkpoints on a store, and the commits and parts that they make superfluous.

The rule (docs/commit-protocol.md, Vacuum): a commit goes once a boundary at or above it is on the
store and a checkpoint at or above that boundary was read back whole. The boundary names the
checkpoint that it rests on. A part goes when no checkpoint names it and no writer can be about to:
those up to the boundary are named anew only where the checkpoint that it rests on has them.
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
from klog.connector.store.writable_store import PutResult

LOG_RETENTION_MS = 30 * 24 * 3_600_000


def list_expired_versions(log: CommitLog) -> list[int]:
    """Give the commits that are left of a cleaning which ended early, lowest first.

    They go upward, so the boundary's own is the last: where it is gone, nothing is listed.
    """
    boundary = log.last_expired_version()
    if boundary < 0 or log.read_without_sidecar(boundary) is None:
        return []
    newest = next((name for name, _ in complete_checkpoints(log)), None)
    return _versions(log, boundary) if newest is not None and newest.version >= boundary else []


def delete_commits(log: CommitLog, versions: Iterable[int]) -> None:
    """Delete commits at or below a boundary that is on the store."""
    for version in versions:
        log.store.delete(log.paths.commit(version))


def expire_log(log: CommitLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Delete commits that a checkpoint stands for and that are older than `retention_ms`.

    Gives the boundary: commits at or below it are gone, or may be.
    """
    due = _due(log, retention_ms)
    if due.resting is None:
        return due.old
    if due.boundary > due.old:
        if not _is_durable(log, due.resting):
            return due.old
        content = str(due.resting).encode()
        if (
            log.store.put_if_absent(log.paths.expiration(due.boundary), content)
            is PutResult.UNKNOWN
        ):
            return due.old  # The next run looks again; until then nothing may go.
    boundary = max(due.boundary, due.old)
    _delete_below(log, boundary, due.whole)
    return boundary


def plan_expiration(log: CommitLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Give the boundary that `expire_log` would leave if it ran now; nothing is written."""
    due = _due(log, retention_ms)
    return max(due.boundary, due.old)


@dataclass(frozen=True, slots=True)
class _Due:
    """Where the boundary is and where it may be, and the whole checkpoint that it rests on."""

    old: int
    boundary: int
    resting: CheckpointName | None
    whole: list[CheckpointName]


def _due(log: CommitLog, retention_ms: int) -> _Due:
    state, old = log.load(), log.last_expired_version()
    found = list(islice(complete_checkpoints(log), 2))
    # After they were read: a boundary that came before may have taken parts of theirs since.
    is_certain = retained_parts(log)
    resting = next((name for name, parts in found if all(map(is_certain, parts))), None)
    whole = [name for name, _ in found]
    if resting is None:
        return _Due(old, old, None, whole)
    aged = version_at_time(log, state, log.clock() - retention_ms)
    return _Due(old, min(resting.version, state.version - 1, aged), resting, whole)


def _is_durable(log: CommitLog, name: CheckpointName) -> bool:
    """Make sure that a checkpoint outlives a loss of power: who put it may have died before that.

    That it can be read does not say so; that it exists, said by the store, does. One that has gone
    was deleted by another cleaning, which rests on a newer one.
    """
    path = log.paths.checkpoint(name)
    return is_durable(log, path, lambda: read_named(log.store, path, name))


def is_durable(log: CommitLog, path: str, read: Callable[[], bytes]) -> bool:
    """Have the store say that a file exists, which it may say only of a durable one.

    `read` gives its bytes. False also where the file is gone.
    """
    try:
        data = read()
    except FileNotFoundError:
        return False
    return log.store.put_if_absent(path, data) is not PutResult.UNKNOWN


def _delete_below(log: CommitLog, boundary: int, whole: list[CheckpointName]) -> None:
    """Delete what a boundary that is on the store makes superfluous, lowest numbers first."""
    delete_commits(log, _versions(log, boundary))
    for sidecar in filter(None, map(parse_sidecar_name, _own_names(log, log.paths.sidecars))):
        if sidecar.version <= boundary:
            log.store.delete(log.paths.sidecar(sidecar))
    keep = {*whole, read_last_expiration(log)[1]}
    for name in filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.checkpoints))):
        if name not in keep and name < whole[-1]:
            log.store.delete(log.paths.checkpoint(name))
    _delete_parts(log, boundary)
    for one in _own_names(log, log.paths.expirations):
        if (version := parse_expiration_version(one)) is not None and version < boundary:
            log.store.delete(log.paths.expiration(version))


def _versions(log: CommitLog, boundary: int) -> list[int]:
    """List the commits at or below a boundary that may be deleted, lowest first."""
    found = map(parse_commit_version, _own_names(log, log.paths.commits))
    return sorted(version for version in found if version is not None and version <= boundary)


def _own_names(log: CommitLog, directory: str) -> list[str]:
    """List the names in a folder that are no links, nor reached through one: others stay."""
    return [entry.name for entry in log.entries(directory) if not entry.link]


def _delete_parts(log: CommitLog, boundary: int) -> None:
    """Delete parts that were written up to a boundary and that no checkpoint names."""
    names = filter(None, map(parse_checkpoint_name, _own_names(log, log.paths.parts)))
    old = {name for name in names if name.version <= boundary}
    if old:
        old.difference_update(part.name for _, parts in list_checkpoints(log) for part in parts)
    for name in sorted(old):
        log.store.delete(log.paths.part(name))
