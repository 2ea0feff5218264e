"""What a broker says of trouble with the logs that it mounts."""

from __future__ import annotations

import re

_TROUBLE = re.compile(r"(?i)truncat|corrupt|invalid|stray|recover.*fail|exception|error")
_OF_ITSELF = re.compile(
    r" (org\.apache\.kafka\.controller\.|kafka\.server\.BrokerLifecycleManager)"
)
"""Its controller, which tells when a busy machine kept events or heartbeats waiting."""


def troubles(said: str) -> list[str]:
    """Give the lines that tell of any."""
    lines = said.splitlines()
    return [line for line in lines if _TROUBLE.search(line) and not _OF_ITSELF.search(line)]
