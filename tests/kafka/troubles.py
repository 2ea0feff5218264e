"""What a broker says of trouble with the logs that it mounts."""

from __future__ import annotations

import re

_TROUBLE = re.compile(r"(?i)truncat|corrupt|invalid|stray|recover.*fail|exception|error")
_OF_A_BUSY_MACHINE = re.compile(
    r"Exceptionally slow controller event|(?i:heartbeat)|session timed out|TimeoutException"
)
"""What its controller says when events or heartbeats were kept waiting."""


def troubles(said: str) -> list[str]:
    """Give the lines that tell of any."""
    lines = said.splitlines()
    return [line for line in lines if _TROUBLE.search(line) and not _OF_A_BUSY_MACHINE.search(line)]
