"""What the refusals of HDFS's NameNode mean, and what a user does about each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from klog.errors import StoreError, StoreRefusedError

USER_VARIABLE = "HADOOP_USER_NAME"
_REMOTE_ERROR = re.compile(r'RPCError\("(?:[\w.$]*\.)?(\w+)", "(.*)', re.DOTALL)
"""An answer of the NameNode, as hdfs-native writes it."""
_PERMANENT = re.compile(r"AccessControlException|QuotaExceeded")
"""Exceptions of the NameNode that stay until somebody changes something."""


@contextmanager
def translate_errors(path: str, operation: str) -> Iterator[None]:
    """Raise errors of hdfs-native as `StoreError`s that name the path and the next step.

    A missing file keeps its class, unless it was to be written.

    Args:
        path: The path that the code works on.
        operation: What would have been done: "read", "listed", "written" or "deleted".

    Raises:
        StoreError: The operation failed.
    """
    try:
        yield
    except FileNotFoundError as exc:
        if operation == "written":
            raise hdfs_error(path, operation, exc) from exc
        raise FileNotFoundError(f"there is no {path}") from None
    except (OSError, RuntimeError, ValueError) as exc:
        raise hdfs_error(path, operation, exc) from exc


def hdfs_error(path: str, operation: str, exc: Exception) -> StoreError:
    """Return the `StoreError` for an error of hdfs-native.

    Args:
        path: The path that the code works on.
        operation: What was to be done: "read", "listed", "written" or "deleted".
        exc: The error.
    """
    error_class = StoreRefusedError if _PERMANENT.search(str(exc)) else StoreError
    return error_class(f"{path}: not {operation}: {short_message(exc)}. {_next_step(str(exc))}")


def is_refused(exc: Exception) -> bool:
    """Return whether the NameNode answered; without an answer the call may have had an effect.

    Args:
        exc: The error of hdfs-native.
    """
    return _REMOTE_ERROR.match(str(exc)) is not None


def short_message(exc: Exception) -> str:
    """Return the NameNode's message without its stack.

    Args:
        exc: The error of hdfs-native.
    """
    match = _REMOTE_ERROR.match(str(exc))
    message = f"{match[1]}: {match[2]}" if match else str(exc)
    return re.split(r"\n|\\n", message, maxsplit=1)[0].rstrip('") .')


def _next_step(message: str) -> str:
    if "AccessControlException" in message:
        return (
            f"Check who this process is ({USER_VARIABLE} or Kerberos), and what that user may do "
            "there"
        )
    if "SafeModeException" in message:
        return "The NameNode is in safe mode: try again when it has left it"
    if "QuotaExceeded" in message or "could only be written to 0" in message:
        return "Free some space or raise the quota, then write again"
    return "Check the path, the NameNode and the DataNodes, then try again"
