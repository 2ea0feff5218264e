"""What may be deleted from a store, and the order in which it goes.

The rule (docs/commit-protocol.md, 6): only this module deletes. A commit goes once a boundary at or
above it is on the store and a checkpoint at or above that boundary was read back whole. A segment
that a commit took out goes when that is longer ago than the readers' grace and no pin needs it. A
file that no commit names goes when it was born below the horizon, which a commit has raised first:
whoever began before it can no longer commit. Clocks decide when, never what.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from klog.connector.log import checkpoint
from klog.connector.log.operations import raise_horizon
from klog.connector.log.paths import (
    CheckpointName,
    boundary_version,
    checkpoint_name,
    commit_version,
    is_pin,
    segment_path,
)
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.store.contract import Put
from klog.logformat.names import partition_of_directory

READER_GRACE_MS = 24 * 3_600_000
LOG_RETENTION_MS = 30 * 24 * 3_600_000
_INDEXES = (".index", ".timeindex")


@dataclass(frozen=True, slots=True)
class Garbage:
    """Files of one topic that may go now, by their paths relative to the root."""

    removed: tuple[str, ...]
    """Taken out by a commit, longer ago than the grace."""
    orphans: tuple[str, ...]
    """Never committed, and too old to be."""


def write_checkpoint(log: TopicLog, state: State) -> CheckpointName:
    """Put a state's checkpoint on the store, beside the commits and never in their way."""
    name, data = checkpoint.encode(state)
    # The name is of the content: who finds it there finds the same bytes.
    log.store.put_if_absent(log.paths.checkpoint(name), data)
    return name


def clean_log(log: TopicLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Delete commits that a checkpoint stands for and that are older than `retention_ms`.

    Gives the boundary: commits at or below it are gone, or may be.
    """
    state, old = log.load(), log.boundary()
    whole = _whole_checkpoints(log)
    if not whole:
        return old
    newest = whole[0]
    aged = version_before(log, state, log.clock() - retention_ms)
    boundary = min(newest.version, state.version - 1, aged)
    if boundary > old:
        if log.store.put_if_absent(log.paths.boundary(boundary), b"") is Put.UNKNOWN:
            return old  # The next run looks again; until then nothing may go.
        old = boundary
    _delete_below(log, old, whole)
    return old


def _delete_below(log: TopicLog, boundary: int, whole: list[CheckpointName]) -> None:
    """Delete what a boundary that is on the store makes superfluous, lowest numbers first."""
    versions = sorted(
        version
        for name in log.names(log.paths.commits)
        if (version := commit_version(name)) is not None and version <= boundary
    )
    for version in versions:
        log.store.delete(log.paths.commit(version))
    keep = whole[:2]
    for name in filter(None, map(checkpoint_name, log.names(log.paths.checkpoints))):
        if name not in keep and name < keep[-1]:
            log.store.delete(log.paths.checkpoint(name))
    for one in log.names(log.paths.boundaries):
        if (version := boundary_version(one)) is not None and version < boundary:
            log.store.delete(log.paths.boundary(version))


def _whole_checkpoints(log: TopicLog) -> list[CheckpointName]:
    """Give the two newest checkpoints that can be read, newest first."""
    found = []
    names = filter(None, map(checkpoint_name, log.names(log.paths.checkpoints)))
    for name in sorted(names, reverse=True):
        try:
            data = log.store.read(log.paths.checkpoint(name))
        except FileNotFoundError:
            continue
        if checkpoint.is_whole(name, data):
            found.append(name)
        if len(found) == 2:
            break
    return found


def version_before(log: TopicLog, state: State, timestamp_ms: int) -> int:
    """Give the last version committed at or before a time, -1 if that is none; by bisection."""
    low, high = log.boundary(), state.version
    if state.timestamp_ms <= timestamp_ms:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        found = log.read(middle)
        if found is None or found.timestamp_ms <= timestamp_ms:
            low = middle  # One that is gone was cleaned meanwhile: it is older than those left.
        else:
            high = middle
    return low


def pin(log: TopicLog, pin_id: str, version: int, lease_ms: int) -> None:
    """Keep the segments of a version for a while, for a reader that takes longer than the grace."""
    said = {"version": version, "expiresMs": log.clock() + lease_ms}
    log.store.put(log.paths.pin(pin_id), [json.dumps(said).encode()])


def unpin(log: TopicLog, pin_id: str) -> None:
    """Give a pin back before it ends."""
    log.store.delete(log.paths.pin(pin_id))


def pinned_version(log: TopicLog) -> int | None:
    """Give the oldest version that a pin keeps; a pin that cannot be read keeps version 0."""
    now_ms = log.clock()
    return min((version for _, version, ends_ms in _pins(log) if ends_ms >= now_ms), default=None)


def _pins(log: TopicLog) -> list[tuple[str, int, int]]:
    """Read all pins: their names, versions and ends; one that cannot be read ends now."""
    found = []
    for name in filter(is_pin, log.names(log.paths.pins)):
        try:
            said = json.loads(log.store.read(f"{log.paths.pins}/{name}"))
            found.append((name, int(said["version"]), int(said["expiresMs"])))
        except FileNotFoundError:
            continue
        except (ValueError, TypeError, KeyError):
            found.append((name, 0, log.clock()))
    return found


def _drop_pins(log: TopicLog, limit_ms: int) -> None:
    """Delete the pins of readers that never gave them back and were not renewed for long."""
    for name, _, ends_ms in _pins(log):
        if ends_ms < limit_ms:
            log.store.delete(f"{log.paths.pins}/{name}")


def vacuum(log: TopicLog, attempt: Attempt, grace_ms: int = READER_GRACE_MS) -> Garbage:
    """Raise the horizon and delete the topic's garbage; gives what was deleted."""
    state = log.load()
    there = files_of(log)
    # Removed ones whose files a vacuum before this deleted need not be known any more.
    forget = [file for file in state.removed["file"].to_pylist() if file not in there]
    horizon = version_before(log, state, log.clock() - grace_ms)
    log.commit(state, raise_horizon(max(horizon, 0), forget), attempt)
    garbage = find_garbage(log, grace_ms)
    for file in (*garbage.removed, *garbage.orphans):
        stem = file.removesuffix(".log")
        # The log last: it is what a vacuum after a crash finds the others by.
        for suffix in (*_INDEXES, ".log"):
            log.store.delete(log.paths.data(stem + suffix))
    _drop_pins(log, log.clock() - grace_ms)
    return garbage


def find_garbage(log: TopicLog, grace_ms: int = READER_GRACE_MS) -> Garbage:
    """Find what may go under the horizon that was committed. Nothing is changed."""
    # The clock before the pins: who is not pinned by now began inside the grace, and this may take
    # long. The pins before the state: one that comes later is of a version at least as new.
    limit_ms = log.clock() - grace_ms
    pinned = pinned_version(log)
    there = files_of(log)
    state = log.load()  # After the listing: what was committed meanwhile is no orphan.
    live = set(state.segments["file"].to_pylist())
    gone = {row["file"]: row for row in state.removed.to_pylist()}
    removed, orphans = [], []
    for file in sorted(there - live):
        row = gone.get(file)
        if row is not None:
            if row["timestamp_ms"] <= limit_ms and (pinned is None or pinned >= row["version"]):
                removed.append(file)
            continue
        path = segment_path(file)
        if path is not None and path.birth is not None and path.birth < state.horizon:
            orphans.append(file)
    return Garbage(tuple(removed), tuple(orphans))


def files_of(log: TopicLog) -> set[str]:
    """List the segments that lie in the topic's directories, those of lost partitions too."""
    found: set[str] = set()
    directories = (
        name for name in log.names(log.paths.root) if _is_own(partition_of_directory(name), log)
    )
    for directory in directories:
        paths = (f"{directory}/{name}" for name in log.names(f"{log.paths.root}/{directory}"))
        found.update(path for path in paths if segment_path(path) is not None)
    return found


def _is_own(owner: tuple[str, int] | None, log: TopicLog) -> bool:
    return owner is not None and owner[0] == log.paths.topic
