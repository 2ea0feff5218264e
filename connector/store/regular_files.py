"""Opening regular files on local disk, and only those.

The rule: klog never opens a FIFO, a socket or a device that has a file's name. Reading one may wait
for ever or never end, and opening one may have an effect.
"""

from __future__ import annotations

import errno
import os
import stat

from klog.errors import NotRegularFileError

LINK_LOOP = "a loop of links"
_KINDS = {
    stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device",
}  # fmt: skip


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor.

    The kind is checked before, as opening may have an effect, and after, as the name may have got
    another file since. `O_NONBLOCK` keeps the open itself from waiting.

    Args:
        path: The file.
        flags: The flags of `os.open`.
        mode: The permissions of a file that is created.

    Raises:
        NotRegularFileError: Something else has the name.
        OSError: The file cannot be opened.
    """
    if not flags & os.O_CREAT or os.path.lexists(path):
        _check_regular(path, _kind_at(path))
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    try:
        _check_regular(path, special_kind(os.fstat(descriptor)))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def regular_file_exists(path: str) -> bool:
    """Return whether a regular file has a name.

    Args:
        path: The path.

    Raises:
        NotRegularFileError: Something else has the name.
    """
    try:
        _check_regular(path, _kind_at(path))
    except FileNotFoundError:
        if not os.path.islink(path):  # noqa: PTH114 - paths are text here
            return False
        raise NotRegularFileError(
            f"{path}: it is a link to {os.readlink(path)}, which is missing. "  # noqa: PTH115
            "Restore that file, or move the link away"
        ) from None
    return True


def special_kind(status: os.stat_result) -> str:
    """Return the kind of a file that is not a regular one, such as "a FIFO"; "" for a regular file.

    Args:
        status: The status of the file.
    """
    kind = stat.S_IFMT(status.st_mode)
    return "" if kind == stat.S_IFREG else _KINDS.get(kind, "something unknown")


def _check_regular(path: str, kind: str) -> None:
    """Raise `NotRegularFileError` for a kind of `special_kind` that is not a regular file."""
    if kind:
        raise NotRegularFileError(
            f"{path}: it is {kind}, and has to be a regular file. Move it away, then restore the "
            "file from a copy if there was one"
        )


def _kind_at(path: str) -> str:
    try:
        return special_kind(os.stat(path))  # noqa: PTH116 - paths are text here
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        return LINK_LOOP
