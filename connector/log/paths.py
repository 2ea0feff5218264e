"""Where the files of a klog root lie, and what their names may be.

    _klog/topics/<topic>/topic.json
    _klog/topics/<topic>/log/<version:020d>.json                        a commit
    _klog/topics/<topic>/checkpoints/<version:020d>-<bytes:012d>-<crc32c:08x>.parquet
    _klog/topics/<topic>/parts/<version:020d>-<bytes:012d>-<crc32c:08x>.parquet    of checkpoints
    _klog/topics/<topic>/sidecars/<version:020d>-<write:16 hex>-<bytes:012d>-<crc32c:08x>.parquet
    _klog/topics/<topic>/gc/<version:020d>                              a boundary
    _klog/topics/<topic>/pins/<id>.json                                 a reader's lease
    <topic>-<partition>/<first offset:020d>-<birth:010d>-<attempt:16 hex>.log

The rule: a name that is read from a store or a commit is hostile until it matches one of these
patterns. The name of a checkpoint, a part of one and a sidecar of a commit says how long the file
is and what its CRC-32C is, so that none that is torn or changed passes for whole. `birth` is the
version of the topic's log when the write began, 0 also where there was no log yet; `write` stands
for the write id of a commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from klog.logformat.names import MAX_OFFSET, partition_of_directory, segment_file

KLOG = "_klog"
MAX_VERSION = 10**10 - 1
"""What a segment's name has room for: a commit a millisecond for 115 days, or ten a second for 31
years; the limit is met with an error."""

_COMMIT = re.compile(r"(?P<version>[0-9]{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>[0-9]{20})-(?P<size>[0-9]{12})-(?P<crc>[0-9a-f]{8})\.parquet"
)
_SIDECAR = re.compile(
    r"(?P<version>[0-9]{20})-(?P<write>[0-9a-f]{16})"
    r"-(?P<size>[0-9]{12})-(?P<crc>[0-9a-f]{8})\.parquet"
)
_BOUNDARY = re.compile(r"[0-9]{20}")
_PIN = re.compile(r"[A-Za-z0-9_-]{8,64}\.json")
_SEGMENT = re.compile(r"(?P<first>[0-9]{20})-(?P<birth>[0-9]{10})-(?P<attempt>[0-9a-f]{8,16})\.log")


@dataclass(frozen=True, slots=True, order=True)
class CheckpointName:
    """What the name of a checkpoint says, or of a part: the version is that of who wrote it."""

    version: int
    size_bytes: int
    crc32c: int

    def __str__(self) -> str:
        """Give the file's name."""
        return f"{self.version:020d}-{self.size_bytes:012d}-{self.crc32c:08x}.parquet"


@dataclass(frozen=True, slots=True)
class SidecarName:
    """What the name of a commit's sidecar says: of which version and write it is."""

    version: int
    write: str
    size_bytes: int
    crc32c: int

    def __str__(self) -> str:
        """Give the file's name."""
        return f"{self.version:020d}-{self.write}-{self.size_bytes:012d}-{self.crc32c:08x}.parquet"


@dataclass(frozen=True, slots=True)
class SegmentPath:
    """A segment's place in the root: by klog with a birth, by a broker (adopted) without one."""

    topic: str
    partition: int
    first_offset: int
    birth: int | None = None
    attempt: str = ""

    def __str__(self) -> str:
        """Give the path, relative to the root."""
        name = f"{self.first_offset:020d}"
        if self.birth is not None:
            name += f"-{self.birth:010d}-{self.attempt}"
        return f"{self.topic}-{self.partition}/{name}.log"


@dataclass(frozen=True, slots=True)
class TopicPaths:
    """The places of one topic's commit log; all of them are paths as the store spells them."""

    root: str
    topic: str

    @property
    def directory(self) -> str:
        """Give the folder of the topic's log."""
        return f"{self.root}/{KLOG}/topics/{self.topic}"

    @property
    def description(self) -> str:
        """Give the place of `topic.json`."""
        return f"{self.directory}/topic.json"

    @property
    def commits(self) -> str:
        """Give the folder of the commits."""
        return f"{self.directory}/log"

    def commit(self, version: int) -> str:
        """Give the place of one commit."""
        return f"{self.commits}/{commit_name(version)}"

    @property
    def checkpoints(self) -> str:
        """Give the folder of the checkpoints."""
        return f"{self.directory}/checkpoints"

    def checkpoint(self, name: CheckpointName) -> str:
        """Give the place of one checkpoint."""
        return f"{self.checkpoints}/{name}"

    @property
    def parts(self) -> str:
        """Give the folder of the checkpoints' parts."""
        return f"{self.directory}/parts"

    def part(self, name: CheckpointName) -> str:
        """Give the place of a checkpoint's part."""
        return f"{self.parts}/{name}"

    @property
    def sidecars(self) -> str:
        """Give the folder of the commits' sidecars."""
        return f"{self.directory}/sidecars"

    def sidecar(self, name: SidecarName) -> str:
        """Give the place of a commit's sidecar."""
        return f"{self.sidecars}/{name}"

    @property
    def boundaries(self) -> str:
        """Give the folder of the boundaries."""
        return f"{self.directory}/gc"

    def boundary(self, version: int) -> str:
        """Give the place of one boundary."""
        return f"{self.boundaries}/{version:020d}"

    @property
    def pins(self) -> str:
        """Give the folder of the readers' leases."""
        return f"{self.directory}/pins"

    def pin(self, pin_id: str) -> str:
        """Give the place of one lease."""
        return f"{self.pins}/{pin_id}.json"

    def data(self, file: str) -> str:
        """Give the place of a segment's file, by its path relative to the root."""
        return f"{self.root}/{file}"


def commit_name(version: int) -> str:
    """Return the name of a commit's file."""
    return f"{version:020d}.json"


def commit_version(name: str) -> int | None:
    """Read the version that a commit's name says; None if it is no such name."""
    found = _COMMIT.fullmatch(name)
    return None if found is None or int(found["version"]) > MAX_VERSION else int(found["version"])


def checkpoint_name(name: str) -> CheckpointName | None:
    """Read the name of a checkpoint or a part; None if it is no such name."""
    found = _CHECKPOINT.fullmatch(name)
    if found is None or int(found["version"]) > MAX_VERSION:
        return None
    return CheckpointName(int(found["version"]), int(found["size"]), int(found["crc"], 16))


def sidecar_name(name: str) -> SidecarName | None:
    """Read the name of a sidecar; None if it is no such name."""
    found = _SIDECAR.fullmatch(name)
    if found is None or int(found["version"]) > MAX_VERSION:
        return None
    return SidecarName(
        int(found["version"]), found["write"], int(found["size"]), int(found["crc"], 16)
    )


def boundary_version(name: str) -> int | None:
    """Read the version that a boundary's name says; None if it is no such name."""
    is_one = _BOUNDARY.fullmatch(name) is not None and int(name) <= MAX_VERSION
    return int(name) if is_one else None


def is_pin(name: str) -> bool:
    """Tell whether a name is that of a reader's lease."""
    return _PIN.fullmatch(name) is not None


def segment_path(path: str) -> SegmentPath | None:
    """Read a segment's path, relative to the root; None if it is no such path."""
    directory, _, name = path.partition("/")
    owner = partition_of_directory(directory)
    if owner is None:
        return None
    found = _SEGMENT.fullmatch(name)
    if found is not None and int(found["first"]) <= MAX_OFFSET:
        return SegmentPath(*owner, int(found["first"]), int(found["birth"]), found["attempt"])
    by_broker = segment_file(name)
    if by_broker is None or by_broker[1] != "log":
        return None
    return SegmentPath(*owner, by_broker[0])
