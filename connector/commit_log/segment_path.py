"""The path of a segment file in a klog root.

    <topic>-<partition>/<first offset:020d>-<base version:010d>-<attempt:16 hex>.log   by klog
    <topic>-<partition>/<base offset:020d>.log                                         by a broker

The rule: a path that is read from a commit or a listing is hostile until it matches one of these
patterns. The base version is the version of the commit log that the write was planned on, 0 also if
there was no log yet. A file of a broker, which `klog adopt` adds, has none.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from klog.logformat.broker_files.file_names import (
    MAX_OFFSET,
    parse_partition_directory,
    parse_segment_file,
)

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
_KLOG_SEGMENT = re.compile(
    r"(?P<first>[0-9]{20})-(?P<base_version>[0-9]{10})-(?P<attempt>[0-9a-f]{8,16})\.log"
)


@dataclass(frozen=True, slots=True)
class SegmentPath:
    """The path of a segment's `.log` file, relative to the root.

    `first_offset` is the first offset in the file. `base_version` is None for a file of a broker.
    `attempt` is unique to the task attempt that wrote the file.
    """

    topic: str
    partition: int
    first_offset: int
    base_version: int | None = None
    attempt: str = ""

    def __str__(self) -> str:
        """Return the path."""
        name = f"{self.first_offset:020d}"
        if self.base_version is not None:
            name += f"-{self.base_version:010d}-{self.attempt}"
        return f"{self.topic}-{self.partition}/{name}.log"


def attempt_id(write_id: str, attempt: int) -> str:
    """Return the 16 hex digits in the names of the files of one attempt of a task.

    The hash of the write id is a start from which attempts are counted, so that two attempts of one
    write can never have the same id: a file replaces another of its name, and the other may be
    committed.

    Args:
        write_id: The id of the write.
        attempt: A number that no other attempt of any task of the write has, such as Spark's task
            attempt id.
    """
    digest = hashlib.blake2b(write_id.encode(), digest_size=8).digest()
    return f"{(int.from_bytes(digest, 'big') + attempt) % (1 << 64):016x}"


def parse_segment_path(path: str) -> SegmentPath | None:
    """Parse the path of a segment; None if it is not such a path.

    Args:
        path: The path relative to the root.
    """
    directory, _, name = path.partition("/")
    topic_partition = parse_partition_directory(directory)
    if topic_partition is None:
        return None
    match = _KLOG_SEGMENT.fullmatch(name)
    if match is not None and int(match["first"]) <= MAX_OFFSET:
        return SegmentPath(
            *topic_partition, int(match["first"]), int(match["base_version"]), match["attempt"]
        )
    broker_file = parse_segment_file(name)
    if broker_file is None or broker_file[1] != "log":
        return None
    return SegmentPath(*topic_partition, broker_file[0])


def segment_of_file(file: str) -> str | None:
    """Return the path of the segment that a file or one of its indexes belongs to.

    Args:
        file: A path relative to the root.

    Returns:
        The path of the `.log` file; None for any other file.
    """
    for suffix in SEGMENT_SUFFIXES:
        if file.endswith(suffix):
            segment = f"{file.removesuffix(suffix)}.log"
            return segment if parse_segment_path(segment) is not None else None
    return None


def index_file_path(path: str, suffix: str) -> str:
    """Return the path of a file of the same segment.

    Args:
        path: The path of the `.log` file.
        suffix: What the name ends with, such as `timeindex`.
    """
    return f"{path.removesuffix('.log')}.{suffix}"
