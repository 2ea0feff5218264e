"""What the kernel's refusals mean on local disk, and what a user does about each."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from klog.errors import StoreError, StoreRefusedError

_PERMANENT = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG,
    errno.EFBIG, errno.ELOOP, errno.EISDIR,
}  # fmt: skip
"""What the kernel answers again until somebody changes something."""


@contextmanager
def translate_errors(path: str, operation: str) -> Iterator[None]:
    """Raise an `OSError` of the code inside as a `StoreError` with the path and the next step.

    A missing file, and a file that is not a directory, keep their classes when they are read or
    listed.

    Args:
        path: The path that the code works on.
        operation: What would have been done: "read", "listed", "written" or "deleted".

    Raises:
        StoreRefusedError: The kernel refused the operation.
        StoreError: The operation failed.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as exc:
        if operation in ("read", "listed"):
            raise
        raise StoreRefusedError(f"{path}: not {operation}: {exc}. Check the path") from exc
    except OSError as exc:
        message = os.strerror(exc.errno) if exc.errno else str(exc)
        error_class = StoreRefusedError if exc.errno in _PERMANENT else StoreError
        raise error_class(f"{path}: not {operation}: {message}. {_next_step(exc, path)}") from exc


def _next_step(exc: OSError, path: str) -> str:
    if exc.errno in (errno.EACCES, errno.EPERM):
        return f"Run as a user who may, or give uid {os.geteuid()} access to {path}"
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space there, then write again"
    if exc.errno == errno.EROFS:
        return "Mount it for writing, or write elsewhere"
    return "Check the path and the disk"
