"""The small text files of a log directory (format notes 4.7 and 4.8).

Offset checkpoints are a version line `0`, a count, and `<topic> <partition> <offset>` lines;
`partition.metadata` names the topic's id. A file that does not say what it should is None: a broker
treats such a checkpoint as empty.
"""

from __future__ import annotations

import re

from klog.logformat.names import MAX_OFFSET

_FIELDS = re.compile(r"(?P<topic>\S+)\s+(?P<partition>[0-9]+)\s+(?P<offset>-?[0-9]+)")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_NO_UUID = "A" * 22


def read_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int] | None:
    """Decode `log-start-offset-checkpoint` and its kin; None if malformed, empty if empty."""
    try:
        lines = data.decode("ascii").splitlines()
        if not lines:
            return {}
        if int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            return None
        fields = [_FIELDS.fullmatch(line) for line in lines[2:]]
        offsets = {(f["topic"], int(f["partition"])): int(f["offset"]) for f in fields if f}
        if None in fields:
            return None
        return offsets if all(0 <= offset <= MAX_OFFSET for offset in offsets.values()) else None
    except (ValueError, IndexError):
        return None


def read_topic_id(data: bytes) -> str | None:
    """Give the topic id that a `partition.metadata` names, 22 characters of URL-safe base64."""
    try:
        entries = dict(line.split(": ", 1) for line in data.decode("ascii").splitlines())
        version = int(entries["version"])
    except (ValueError, KeyError):
        return None
    topic_id = entries.get("topic_id", "")
    known = version >= 0 and _UUID.fullmatch(topic_id) is not None and topic_id != _NO_UUID
    return topic_id if known else None
