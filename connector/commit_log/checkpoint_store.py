"""Checkpoints on the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from klog.connector.commit_log import state_checkpoint
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
    parse_checkpoint_name,
)
from klog.connector.commit_log.commit_log_reader import MAX_LOADS
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES, read_named
from klog.errors import InvalidFileError, KlogError, UnsupportedFormatError


def retained_parts(log: CommitLog) -> Callable[[Part], bool]:
    """Give what tells whether a part is there to stay (see `checkpoint_parts.py`)."""
    boundary, resting = read_last_expiration(log)
    found = None if resting is None else read_checkpoint_parts(log, resting)
    named = {part.name for part in found or ()}
    return lambda part: part.name.version > boundary or part.name in named


def read_last_expiration(log: CommitLog) -> tuple[int, CheckpointName | None]:
    """Give the boundary and the checkpoint that it rests on, which is its content."""
    for _ in range(MAX_LOADS):
        boundary = log.last_expired_version()
        if boundary < 0:
            return boundary, None
        with suppress(FileNotFoundError):  # A higher one has taken its place.
            content = log.store.read(log.paths.expiration(boundary), MAX_SMALL_FILE_BYTES)
            return boundary, parse_checkpoint_name(content.decode(errors="replace"))
    raise KlogError(f"{log.paths.expirations}: the boundary is listed and cannot be read")


def list_checkpoints(log: CommitLog) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Give the checkpoints whose own file is whole, and their parts, newest first."""
    names = filter(None, map(parse_checkpoint_name, log.names(log.paths.checkpoints)))
    for name in sorted(names, reverse=True):
        parts = read_checkpoint_parts(log, name)
        if parts is not None:
            yield name, parts


def read_checkpoint_parts(log: CommitLog, name: CheckpointName) -> tuple[Part, ...] | None:
    """Read which parts a checkpoint has; None if it is not there or not whole."""
    try:
        data = read_named(log.store, log.paths.checkpoint(name), name)
    except (FileNotFoundError, InvalidFileError):
        return None
    if not state_checkpoint.is_intact(name, data):
        return None
    try:
        return state_checkpoint.read_parts(data)
    except UnsupportedFormatError as exc:
        raise UnsupportedFormatError(
            f"checkpoint {log.paths.checkpoint(name)}: {exc.reason}"
        ) from exc


def complete_checkpoints(log: CommitLog) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Give the checkpoints that can be read with all their parts, newest first."""
    for name, parts in list_checkpoints(log):
        if all(_is_whole_part(log, part) for part in parts):
            yield name, parts


def _is_whole_part(log: CommitLog, part: Part) -> bool:
    try:
        return state_checkpoint.is_intact(part.name, log.read_part(part.name))
    except FileNotFoundError:
        return False
