"""Names of files that are being written: a temporary one beside the final name.

The rule: a file gets its final name only when it is whole and durable, so that a killed writer
leaves a temporary file and never a torn one. Vacuum knows what was left by its name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TypeAlias

TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<id>[0-9a-f]{16})\.tmp", re.DOTALL)
"""The whole name of a temporary file; `name` is the one that it would have got."""

NewId: TypeAlias = Callable[[], str]
"""Makes 16 hexadecimal digits that no other call, process or machine has made."""


def random_id() -> str:
    """Give 64 random bits from the operating system, which forked processes do not share."""
    return secrets.token_hex(8)


def temporary_path(path: str, new_id: NewId) -> str:
    """Name a temporary file in the directory of `path`."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}.{new_id()}.tmp"
