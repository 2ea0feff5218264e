"""Directories on local disk that survive a loss of power.

The rule: a name is durable when its directory is synced. So each directory that is made is synced
into its parent, also one that another process has just made and may not have synced yet.
"""

from __future__ import annotations

import os

from klog.errors import StoreRefusedError


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable.

    Args:
        directory: The path of the directory.

    Raises:
        OSError: The kernel refuses it.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(directory: str) -> None:
    """Make a directory and those above it, durable.

    Args:
        directory: The path of the directory.

    Raises:
        StoreError: A directory cannot be made there.
        OSError: The kernel refuses it.
    """
    missing: list[str] = []
    # Up to the first directory that exists, then down, each way once. What is still missing on the
    # way down cannot be made: it lies after a dangling link, or in a file system like /proc.
    while not _make_directory(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)  # noqa: PTH120 - paths are text here
    for path in reversed(missing):
        if not _make_directory(path):
            raise _cannot_be_made(path)


def _make_directory(directory: str) -> bool:
    """Make one directory durable; return False if its parent is missing."""
    parent = os.path.dirname(directory)  # noqa: PTH120
    try:
        os.mkdir(directory)  # noqa: PTH102
    except FileNotFoundError:
        if parent in ("", directory):
            raise _cannot_be_made(directory) from None
        return False
    except FileExistsError:
        if os.path.islink(directory) and not os.path.exists(directory):  # noqa: PTH110, PTH114
            raise StoreRefusedError(
                f"{directory}: it is a link to {os.readlink(directory)}, "  # noqa: PTH115
                "which is missing. Make that directory, or move the link away"
            ) from None
    sync_directory(parent)
    return True


def _cannot_be_made(directory: str) -> StoreRefusedError:
    return StoreRefusedError(
        f"{directory}: the directory cannot be made, as the file system there makes none. Use a "
        "path on another file system"
    )
