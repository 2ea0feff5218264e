"""Checkpoints on a store, and the commits and parts that they make superfluous.

The rule (docs/commit-protocol.md, Garbage): a commit goes once a boundary at or above it is on the
store and a checkpoint at or above that boundary was read back whole. The boundary names the
checkpoint that it rests on. A part goes when no checkpoint names it and no writer can be about to:
those up to the boundary are named anew only where the checkpoint that it rests on has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from klog.connector.log import checkpoint, checkpoint_parts
from klog.connector.log.checkpoint_parts import Part
from klog.connector.log.log_reader import MAX_LOADS
from klog.connector.log.max_sizes import MAX_TABLE_BYTES, SMALL_BYTES, read_named
from klog.connector.log.paths import (
    CheckpointName,
    boundary_version,
    checkpoint_name,
    commit_version,
    sidecar_name,
)
from klog.connector.log.state import State
from klog.connector.log.topic_log import MAX_PUTS, TopicLog
from klog.connector.store.contract import Put
from klog.errors import InvalidFileError, KlogError, UnsupportedFormatError

LOG_RETENTION_MS = 30 * 24 * 3_600_000


def write_checkpoint(
    log: TopicLog, state: State, pause: checkpoint.Pause = lambda: None
) -> CheckpointName:
    """Put a state's checkpoint on the store, beside the commits and never in their way.

    The state is one that a commit of the caller's own ended: where that of another ended it, a loss
    of power may undo the commit and leave its checkpoint.
    Of a large state only the parts are written that have changed, and they before what names them.
    `pause` is as of `checkpoint.encode`.
    """
    rows = state.live.rows()
    parts: list[Part] = []
    if len(rows) > 2 * checkpoint_parts.PART_ROWS:
        known = _known_parts(log, state)
        pause()
        cut = checkpoint_parts.cut(rows, known, _is_certain(log))
        parts += cut.kept
        for first, end in cut.wanted:
            wanted = checkpoint_parts.of_range(rows, first, end)
            name, data = checkpoint.encode_part(wanted, state.version)
            _check_written(log, name)
            pause()
            _put_part(log, name, data)
            parts.append(Part(name, first, end, len(wanted)))
    name, data = checkpoint.encode(state, sorted(parts, key=lambda part: part.first), pause)
    pause()
    _check_written(log, name)
    checkpoint.parts_of(data)  # What no reader would take, once it is there ends the topic.
    # The name is of the content: who finds it there finds the same bytes.
    log.store.put_if_absent(log.paths.checkpoint(name), data)
    return name


def _check_written(log: TopicLog, name: CheckpointName) -> None:
    """Raise `KlogError` for a file that is larger than readers take."""
    if name.size_bytes > MAX_TABLE_BYTES:
        raise KlogError(
            f"{log.paths.directory}: a checkpoint's file would have {name.size_bytes} bytes, at "
            f"most {MAX_TABLE_BYTES} are read. Have fewer segments: run `klog merge`, then `klog "
            "vacuum`"
        )


def _known_parts(log: TopicLog, state: State) -> list[Part]:
    """Give the parts of an earlier checkpoint that are on the store.

    It is the one that the state comes from, which was read whole, or else the newest.
    """
    name = state.checkpoint
    parts = None if name is None else _read_checkpoint(log, name)
    if parts is None:
        older = (parts for name, parts in _checkpoints(log) if name.version <= state.version)
        parts = next(older, ())
    there = {entry.name: entry.size_bytes for entry in log.entries(log.paths.parts)}
    return [one for one in parts if there.get(str(one.name)) == one.name.size_bytes]


def _put_part(log: TopicLog, name: CheckpointName, data: bytes) -> None:
    path = log.paths.part(name)
    for tries in range(1, MAX_PUTS + 1):
        if log.store.put_if_absent(path, data) is not Put.UNKNOWN:
            return
        log.wait(tries)
    raise KlogError(f"{path}: the store did not say whether it was written; checkpoint later")


def cleaned_versions(log: TopicLog) -> list[int]:
    """Give the commits that are left of a cleaning which ended early, lowest first.

    They go upward, so the boundary's own is the last: where it is gone, nothing is listed.
    """
    boundary = log.boundary()
    if boundary < 0 or log.read_alone(boundary) is None:
        return []
    newest = next((name for name, _ in whole_checkpoints(log)), None)
    return _versions(log, boundary) if newest is not None and newest.version >= boundary else []


def delete_commits(log: TopicLog, versions: Iterable[int]) -> None:
    """Delete commits at or below a boundary that is on the store."""
    for version in versions:
        log.store.delete(log.paths.commit(version))


def clean_log(log: TopicLog, retention_ms: int = LOG_RETENTION_MS) -> int:
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
        if log.store.put_if_absent(log.paths.boundary(due.boundary), content) is Put.UNKNOWN:
            return due.old  # The next run looks again; until then nothing may go.
    boundary = max(due.boundary, due.old)
    _delete_below(log, boundary, due.whole)
    return boundary


def would_clean_log(log: TopicLog, retention_ms: int = LOG_RETENTION_MS) -> int:
    """Give the boundary that `clean_log` would leave if it ran now; nothing is written."""
    due = _due(log, retention_ms)
    return max(due.boundary, due.old)


@dataclass(frozen=True, slots=True)
class _Due:
    """Where the boundary is and where it may be, and the whole checkpoint that it rests on."""

    old: int
    boundary: int
    resting: CheckpointName | None
    whole: list[CheckpointName]


def _due(log: TopicLog, retention_ms: int) -> _Due:
    state, old = log.load(), log.boundary()
    found = list(islice(whole_checkpoints(log), 2))
    # After they were read: a boundary that came before may have taken parts of theirs since.
    is_certain = _is_certain(log)
    resting = next((name for name, parts in found if all(map(is_certain, parts))), None)
    whole = [name for name, _ in found]
    if resting is None:
        return _Due(old, old, None, whole)
    aged = version_before(log, state, log.clock() - retention_ms)
    return _Due(old, min(resting.version, state.version - 1, aged), resting, whole)


def _is_durable(log: TopicLog, name: CheckpointName) -> bool:
    """Make sure that a checkpoint outlives a loss of power: who put it may have died before that.

    That it can be read does not say so; that it exists, said by the store, does. One that has gone
    was deleted by another cleaning, which rests on a newer one.
    """
    path = log.paths.checkpoint(name)
    return is_durable(log, path, lambda: read_named(log.store, path, name))


def is_durable(log: TopicLog, path: str, read: Callable[[], bytes]) -> bool:
    """Have the store say that a file exists, which it may say only of a durable one.

    `read` gives its bytes. False also where the file is gone.
    """
    try:
        data = read()
    except FileNotFoundError:
        return False
    return log.store.put_if_absent(path, data) is not Put.UNKNOWN


def _delete_below(log: TopicLog, boundary: int, whole: list[CheckpointName]) -> None:
    """Delete what a boundary that is on the store makes superfluous, lowest numbers first."""
    delete_commits(log, _versions(log, boundary))
    for sidecar in filter(None, map(sidecar_name, _own_names(log, log.paths.sidecars))):
        if sidecar.version <= boundary:
            log.store.delete(log.paths.sidecar(sidecar))
    keep = {*whole, _newest_boundary(log)[1]}
    for name in filter(None, map(checkpoint_name, _own_names(log, log.paths.checkpoints))):
        if name not in keep and name < whole[-1]:
            log.store.delete(log.paths.checkpoint(name))
    _delete_parts(log, boundary)
    for one in _own_names(log, log.paths.boundaries):
        if (version := boundary_version(one)) is not None and version < boundary:
            log.store.delete(log.paths.boundary(version))


def _versions(log: TopicLog, boundary: int) -> list[int]:
    """List the commits at or below a boundary that may be deleted, lowest first."""
    found = map(commit_version, _own_names(log, log.paths.commits))
    return sorted(version for version in found if version is not None and version <= boundary)


def _own_names(log: TopicLog, directory: str) -> list[str]:
    """List the names in a folder that are no links, nor reached through one: others stay."""
    return [entry.name for entry in log.entries(directory) if not entry.link]


def _delete_parts(log: TopicLog, boundary: int) -> None:
    """Delete parts that were written up to a boundary and that no checkpoint names."""
    names = filter(None, map(checkpoint_name, _own_names(log, log.paths.parts)))
    old = {name for name in names if name.version <= boundary}
    if old:
        old.difference_update(part.name for _, parts in _checkpoints(log) for part in parts)
    for name in sorted(old):
        log.store.delete(log.paths.part(name))


def _is_certain(log: TopicLog) -> Callable[[Part], bool]:
    """Give what tells whether a part is there to stay (see `checkpoint_parts.py`)."""
    boundary, resting = _newest_boundary(log)
    found = None if resting is None else _read_checkpoint(log, resting)
    named = {part.name for part in found or ()}
    return lambda part: part.name.version > boundary or part.name in named


def _newest_boundary(log: TopicLog) -> tuple[int, CheckpointName | None]:
    """Give the boundary and the checkpoint that it rests on, which is its content."""
    for _ in range(MAX_LOADS):
        boundary = log.boundary()
        if boundary < 0:
            return boundary, None
        with suppress(FileNotFoundError):  # A higher one has taken its place.
            content = log.store.read(log.paths.boundary(boundary), SMALL_BYTES)
            return boundary, checkpoint_name(content.decode(errors="replace"))
    raise KlogError(f"{log.paths.boundaries}: the boundary is listed and cannot be read")


def _checkpoints(log: TopicLog) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Give the checkpoints whose own file is whole, and their parts, newest first."""
    names = filter(None, map(checkpoint_name, log.names(log.paths.checkpoints)))
    for name in sorted(names, reverse=True):
        parts = _read_checkpoint(log, name)
        if parts is not None:
            yield name, parts


def _read_checkpoint(log: TopicLog, name: CheckpointName) -> tuple[Part, ...] | None:
    """Read which parts a checkpoint has; None if it is not there or not whole."""
    try:
        data = read_named(log.store, log.paths.checkpoint(name), name)
    except (FileNotFoundError, InvalidFileError):
        return None
    if not checkpoint.is_whole(name, data):
        return None
    try:
        return checkpoint.parts_of(data)
    except UnsupportedFormatError as exc:
        raise UnsupportedFormatError(
            f"checkpoint {log.paths.checkpoint(name)}: {exc.reason}"
        ) from exc


def whole_checkpoints(log: TopicLog) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Give the checkpoints that can be read with all their parts, newest first."""
    for name, parts in _checkpoints(log):
        if all(_is_whole_part(log, part) for part in parts):
            yield name, parts


def _is_whole_part(log: TopicLog, part: Part) -> bool:
    try:
        return checkpoint.is_whole(part.name, log.read_part(part.name))
    except FileNotFoundError:
        return False


def version_before(log: TopicLog, state: State, timestamp_ms: int) -> int:
    """Give the last version that is known to be committed at or before a time; -1 if none is.

    By bisection. Commits that were cleaned have no time any more, and may be young: a log may keep
    less than the grace.
    """
    low, high, known = log.boundary(), state.version, -1
    if state.timestamp_ms <= timestamp_ms:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        found = log.read_alone(middle)
        if found is None:
            low = middle  # Cleaned meanwhile: it is older than those left.
        elif found.timestamp_ms <= timestamp_ms:
            low = known = middle
        else:
            high = middle
    return known
