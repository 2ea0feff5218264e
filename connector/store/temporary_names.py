"""Names of temporary files, which lie in the directory of the file that they become.

The rule: a file gets its final name only when it is complete and durable. A writer that is killed
leaves a temporary file, never a torn one. Vacuum recognises temporary files by their names.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TypeAlias

TEMPORARY_NAME = re.compile(r"\.(?P<name>.+)\.(?P<id>[0-9a-f]{16})\.tmp", re.DOTALL)
"""The name of a temporary file; the group `name` is the final name of the file."""

NewTemporaryId: TypeAlias = Callable[[], str]
"""Returns 16 hexadecimal digits that no other call, process or machine has."""


def random_id() -> str:
    """Return 64 random bits of the operating system, which forked processes do not share."""
    return secrets.token_hex(8)


def temporary_path(path: str, new_id: NewTemporaryId) -> str:
    """Return the path of a temporary file for a file.

    Args:
        path: The final path of the file.
        new_id: Returns the id of the temporary file.
    """
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}.{new_id()}.tmp"
