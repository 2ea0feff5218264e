"""Find and read checkpoints, their parts and the last expired version on the store.

The rule: a checkpoint counts only if its bytes match its name and, for `complete_checkpoints`, all
its parts match theirs. Others are skipped, never an error: an older one, or the commits, replace
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from klog.connector.commit_log import commit_log_paths, state_checkpoint
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    MAX_VERSION,
    CheckpointName,
    parse_checkpoint_name,
)
from klog.connector.commit_log.commit_log_reader import MAX_LOADS
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES, read_named
from klog.connector.commit_log.format_versions import unreadable_file_error
from klog.errors import InvalidFileError, StoreError, UnsupportedFormatError


def retained_parts(log: CommitLog) -> Callable[[Part], bool]:
    """Return a predicate that says whether a part is certain to stay (see `checkpoint_parts.py`).

    Args:
        log: The log of the topic.
    """
    expiration = read_last_expiration(log)
    name = expiration.checkpoint
    parts = None if name is None else read_checkpoint_parts(log, name)
    retained_names = {part.name for part in parts or ()}
    return lambda part: part.name.version > expiration.version or part.name in retained_names


@dataclass(frozen=True, slots=True)
class LastExpiration:
    """The last expired version, and the checkpoint that its file names.

    Attributes:
        version: The version; -1 if none has expired.
        checkpoint: The checkpoint; None if the file names none.
    """

    version: int
    checkpoint: CheckpointName | None


def read_last_expiration(log: CommitLog) -> LastExpiration:
    """Read the last expired version and the checkpoint that its file names.

    Args:
        log: The log of the topic.

    Raises:
        StoreError: The file is listed and cannot be read.
    """
    for _ in range(MAX_LOADS):
        version = log.last_expired_version()
        if version < 0:
            return LastExpiration(version, None)
        with suppress(FileNotFoundError):  # A higher version has replaced it.
            content = log.store.read(log.paths.expiration(version), MAX_SMALL_FILE_BYTES)
            name = parse_checkpoint_name(content.decode(errors="replace"))
            return LastExpiration(version, name)
    raise StoreError(
        f"{log.paths.expirations}: the last expired version is listed and cannot be read. Check "
        "the store, then try again"
    )


def list_checkpoints(
    log: CommitLog, min_version: int = 0, max_version: int = MAX_VERSION
) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Yield the checkpoints whose own file is intact, with their parts, newest first.

    Args:
        log: The log of the topic.
        min_version: The lowest version that a checkpoint may have.
        max_version: The highest one.
    """
    names = [name for name in log.checkpoint_names() if min_version <= name.version <= max_version]
    for name in sorted(names, reverse=True):
        parts = read_checkpoint_parts(log, name)
        if parts is not None:
            yield name, parts


def read_checkpoint_parts(log: CommitLog, name: CheckpointName) -> tuple[Part, ...] | None:
    """Read the names of a checkpoint's parts.

    Args:
        log: The log of the topic.
        name: The checkpoint.

    Returns:
        The parts; None if the checkpoint is missing or damaged.

    Raises:
        UnsupportedFormatError: The checkpoint needs a newer klog, or is not a checkpoint.
    """
    try:
        data = read_named(log.store, log.paths.checkpoint(name), name)
    except (FileNotFoundError, InvalidFileError):
        return None
    if not commit_log_paths.is_intact(name, data):
        return None
    try:
        return state_checkpoint.decode_parts(data)
    except UnsupportedFormatError as exc:
        path = log.paths.checkpoint(name)
        raise unreadable_file_error(f"checkpoint {path}", exc, "Move it away") from exc


def complete_checkpoints(
    log: CommitLog, min_version: int = 0, max_version: int = MAX_VERSION
) -> Iterator[tuple[CheckpointName, tuple[Part, ...]]]:
    """Yield the checkpoints whose parts are all intact, with their parts, newest first.

    Args:
        log: The log of the topic.
        min_version: The lowest version that a checkpoint may have.
        max_version: The highest one.
    """
    for name, parts in list_checkpoints(log, min_version, max_version):
        if _has_parts(log, parts):
            yield name, parts


def oldest_complete_checkpoint(log: CommitLog, min_version: int) -> CheckpointName | None:
    """Return the oldest checkpoint from a version on whose parts are all intact; None without one.

    Args:
        log: The log of the topic.
        min_version: The lowest version that it may have.
    """
    for name in sorted(name for name in log.checkpoint_names() if name.version >= min_version):
        parts = read_checkpoint_parts(log, name)
        if parts is not None and _has_parts(log, parts):
            return name
    return None


def _has_parts(log: CommitLog, parts: Iterable[Part]) -> bool:
    return all(_is_intact_part(log, part) for part in parts)


def _is_intact_part(log: CommitLog, part: Part) -> bool:
    try:
        return commit_log_paths.is_intact(part.name, log.read_part(part.name))
    except FileNotFoundError:
        return False
