"""The ids of a commit, and the program and user that write it.

Ids are Kafka's `Uuid`: 16 random bytes in URL-safe base64, which `partition.metadata` prints as 22
characters. No id begins with a dash, which a command would take for an option.
"""

from __future__ import annotations

import base64
import getpass
import platform
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from klog.version import VERSION

NewId: TypeAlias = Callable[[], str]
"""Returns an id that no other call, process or machine has returned."""


def random_uuid() -> str:
    """Return a new id, as `Uuid.randomUuid().toString()` does."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def this_engine(by: str = "") -> str:
    """Return the engine of a commit: klog's version, the program, the user and the machine.

    Args:
        by: The program that calls klog, such as Spark and its version; empty for klog's own
            commands.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "?"  # A container may run under a number that has no name.
    through = f" by {by}" if by else ""
    return f"klog {VERSION}{through}, {user}@{platform.node() or '?'}"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What all tries of one commit have in common: the write id, operation and engine."""

    write_id: str
    operation: str
    engine: str
