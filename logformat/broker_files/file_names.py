"""The names in a broker's log directory (docs/format.md, 7, seen 9).

The rule: a partition's directory is `<topic>-<partition>`, split at the last dash. A replica that
is moved, deleted or stray has `.<32 hex digits>-future`, `-delete` or `-stray` after it, and is not
a partition. A segment's files are its base offset in 20 digits and a suffix.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from klog.logformat.topic_partition import TopicPartition

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
INTERNAL_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
)
"""Only a broker's coordinators and controllers write to these."""
_PARTITION_DIRECTORY = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})"
)
_SEGMENT_FILE = re.compile(r"(?P<offset>[0-9]{20})\.(?P<suffix>log|index|timeindex|txnindex)")
_TRANSITIONAL = re.compile(
    r"(?P<offset>[0-9]{1,20})\.(?P<suffix>.+)\.(?P<kind>deleted|cleaned|swap)"
)
_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})\.snapshot")
MAX_NAME_BYTES = 255
"""The longest name of a file or directory that file systems allow."""
MAX_PARTITION = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 1
"""The largest offset in 8 bytes; the offset after the last one has to fit too."""


class SegmentFile(NamedTuple):
    """The name of a segment's file; suffixes are `log`, `index`, `timeindex` and `txnindex`."""

    base_offset: int
    suffix: str


class TransitionalFile(NamedTuple):
    """The name of a file that a broker deletes, or that its cleaner writes.

    Attributes:
        offset: The base offset of a segment, or the offset of a snapshot.
        suffix: What follows the offset, as `log` or `snapshot`.
        kind: `deleted`, `cleaned` or `swap`.
    """

    offset: int
    suffix: str
    kind: str


def is_topic(name: str) -> bool:
    """Return whether Kafka allows a topic of this name.

    Args:
        name: Any text.
    """
    return TOPIC.fullmatch(name) is not None and name not in (".", "..")


@lru_cache(maxsize=4096)  # A topic's hundred thousand files lie in a few directories.
def parse_partition_directory(name: str) -> TopicPartition | None:
    """Split the name of a partition's directory into topic and partition; None for others.

    Args:
        name: The name of a directory.
    """
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or not is_topic(match["topic"]) or int(match["partition"]) > MAX_PARTITION:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def parse_segment_file(name: str) -> SegmentFile | None:
    """Split the name of a segment's file into base offset and suffix; None for others.

    Args:
        name: The name of a file.
    """
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match["offset"]) > MAX_OFFSET:
        return None
    return SegmentFile(int(match["offset"]), match["suffix"])


def parse_transitional_file(name: str) -> TransitionalFile | None:
    """Split `<offset>.<suffix>.<deleted|cleaned|swap>` into its three parts; None for others.

    Args:
        name: The name of a file.
    """
    match = _TRANSITIONAL.fullmatch(name)
    if match is None or int(match["offset"]) > MAX_OFFSET:
        return None
    return TransitionalFile(int(match["offset"]), match["suffix"], match["kind"])


def parse_snapshot_file(name: str) -> int | None:
    """Return the offset of a producer snapshot, the first that it does not cover; None for others.

    Args:
        name: The name of a file.
    """
    match = _SNAPSHOT.fullmatch(name)
    return None if match is None or int(match["offset"]) > MAX_OFFSET else int(match["offset"])


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file.

    Args:
        base_offset: The base offset of the segment.
        suffix: What follows the offset, without the dot.
    """
    return f"{base_offset:020d}.{suffix}"


def deleted_directory_name(name: TopicPartition, unique: str) -> str:
    """Return the name that a broker gives a partition's directory before it deletes it.

    The name of a long topic is cut (Kafka's `UnifiedLog.logDeleteDirName`).

    Args:
        name: The partition.
        unique: 32 hex digits.
    """
    suffix = f"-{name.partition}.{unique}-delete"
    return name.topic[: MAX_NAME_BYTES - len(suffix)] + suffix
