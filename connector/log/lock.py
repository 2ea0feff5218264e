"""Whether a broker holds a log directory: it locks `.lock` there for as long as it runs.

The lock is asked about, never taken. Only local disk on Linux can tell; a copy on another store is
held by nobody, and elsewhere a broker's directory is read as if none held it.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from klog.connector.store.local import open_regular
from klog.errors import NotRegularFileError

_FLOCK = struct.Struct("hhqqi4x")
"""Linux's `struct flock` on 64 bits: type, whence, start, length, process."""


def is_held(directory: str) -> bool:
    """Tell whether another process has locked `<directory>/.lock`; one that may not be read is not.

    Raises `OSError` where it cannot be told, as where this process has too many files open: a live
    log read as one that was left would end elsewhere.
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
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
