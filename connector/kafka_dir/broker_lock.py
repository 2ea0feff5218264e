"""Whether a broker holds a log directory: it locks `.lock` there for as long as it runs.

The rule: klog asks about the lock and never takes it. Only local disk on Linux answers. A copy on
another store is nobody's, and elsewhere a directory is read as if no broker ran.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys

from klog.connector.store.regular_files import open_regular
from klog.errors import NotRegularFileError

_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_FLOCK = struct.Struct("hhqqi4x")
"""Linux's `struct flock` on 64 bits: type, whence, start, length, process."""


def is_locked_by_broker(directory: str) -> bool:
    """Return whether another process has locked `<directory>/.lock`.

    A lock file that this user may not read is not locked, nor is one on a file system that has no
    locks: a broker does not start there.

    Args:
        directory: The path of the log directory on local disk.

    Raises:
        OSError: If there is no answer, as when this process has too many files open. A log of a
            running broker would end elsewhere if it were read as one that a broker left.
    """
    if sys.platform != "linux":
        return False
    try:
        descriptor = open_regular(f"{directory}/.lock")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    except NotRegularFileError:
        return False  # A broker makes a regular file.
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, question)
    except OSError as exc:
        if exc.errno not in _NO_LOCKS:
            raise
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
