"""What the names in a broker's log directory mean (docs/format.md, 7, seen 9).

A partition's directory is `<topic>-<partition>`, split at the last dash; a replica on the move, a
deleted or a stray one has `.<32 hex digits>-future`, `-delete` or `-stray` behind it and is not a
partition. A segment's files are its base offset in 20 digits and a suffix.
"""

from __future__ import annotations

import re
from functools import lru_cache

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
INTERNAL_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
)
"""To these only a broker's coordinators and controllers write."""
_PARTITION_DIRECTORY = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})"
)
_SEGMENT_FILE = re.compile(r"(?P<offset>[0-9]{20})\.(?P<suffix>log|index|timeindex|txnindex)")
_TRANSITIONAL = re.compile(r"(?P<offset>[0-9]{1,20})\.(?P<rest>.+)\.(?P<kind>deleted|cleaned|swap)")
_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})\.snapshot")
MAX_NAME_BYTES = 255
"""Of a file or directory, as file systems have it."""
MAX_PARTITION = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 1
"""As 8 bytes say it, the offset behind the last one too."""


def is_topic(name: str) -> bool:
    """Tell whether Kafka allows a topic of this name."""
    return TOPIC.fullmatch(name) is not None and name not in (".", "..")


@lru_cache(maxsize=4096)  # A topic's hundred thousand files lie in a few directories.
def partition_of_directory(name: str) -> tuple[str, int] | None:
    """Split a directory's name into topic and partition; None if it is not a partition's."""
    found = _PARTITION_DIRECTORY.fullmatch(name)
    if found is None or not is_topic(found["topic"]) or int(found["partition"]) > MAX_PARTITION:
        return None
    return found["topic"], int(found["partition"])


def segment_file(name: str) -> tuple[int, str] | None:
    """Split a file's name into base offset and suffix (`log`, `index`, ...); None for others."""
    found = _SEGMENT_FILE.fullmatch(name)
    return None if found is None else _bounded(found["offset"], found["suffix"])


def transitional_file(name: str) -> tuple[int, str, str] | None:
    """Split `<offset>.<suffix>.<deleted|cleaned|swap>` into its three parts; None for others."""
    found = _TRANSITIONAL.fullmatch(name)
    if found is None or int(found["offset"]) > MAX_OFFSET:
        return None
    return int(found["offset"]), found["rest"], found["kind"]


def snapshot_file(name: str) -> int | None:
    """Give the offset of a producer snapshot, the first it does not include; None for others."""
    found = _SNAPSHOT.fullmatch(name)
    return None if found is None or int(found["offset"]) > MAX_OFFSET else int(found["offset"])


def segment_name(base_offset: int, suffix: str) -> str:
    """Name a segment's file as a broker does."""
    return f"{base_offset:020d}.{suffix}"


def deleted_directory(topic: str, partition: int, unique: str) -> str:
    """Name a partition's directory as a broker does that is about to delete it.

    `unique` is 32 hex digits. Of a long topic's name the end is left out (Kafka's
    `UnifiedLog.logDeleteDirName`).
    """
    behind = f"-{partition}.{unique}-delete"
    return topic[: MAX_NAME_BYTES - len(behind)] + behind


def _bounded(offset: str, suffix: str) -> tuple[int, str] | None:
    return (int(offset), suffix) if int(offset) <= MAX_OFFSET else None
