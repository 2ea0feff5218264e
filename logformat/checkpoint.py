"""The small text files of a log directory (format notes 4.7 and 4.8).

Offset checkpoints are a version line `0`, a count, and `<topic> <partition> <offset>` lines;
`partition.metadata` names the topic's id. A file that does not say what it should is None: a broker
treats such a checkpoint as empty.
"""

from __future__ import annotations

from klog.logformat.names import MAX_OFFSET


def read_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int] | None:
    """Decode `log-start-offset-checkpoint` and its kin; None if malformed, empty if empty."""
    try:
        lines = data.decode("ascii").splitlines()
        if not lines:
            return {}
        if int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            return None
        fields = [line.split() for line in lines[2:]]
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in fields}
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
    return entries.get("topic_id") if version >= 0 else None
