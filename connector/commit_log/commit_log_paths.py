"""Paths of the files of a klog root and of a topic's commit log, and what their names say.

    _klog/format.json                                                   who may read and write
    _klog/topics/<topic>/topic.json                                     the same, for one topic
    _klog/topics/<topic>/log/<version:020d>.json                        a commit
    _klog/topics/<topic>/checkpoints/<version:020d>-<bytes:012d>-<crc32c:08x>.parquet
    _klog/topics/<topic>/parts/<version:020d>-<bytes:012d>-<crc32c:08x>.parquet    of checkpoints
    _klog/topics/<topic>/sidecars/<version:020d>-<write:16 hex>-<bytes:012d>-<crc32c:08x>.parquet
    _klog/topics/<topic>/gc/<version:020d>                              the last expired version
    _klog/topics/<topic>/pins/<id>.json                                 a snapshot lease

The rule (docs/commit-protocol.md, Files): commit n of a topic is at `log/` and its version in 20
digits, from 0 and without gaps, so its path is known before it is read or put. A name that is read
from a store or from a commit is hostile until it matches one of these patterns. The name of a
checkpoint, of a part of one and of a sidecar has the length and the CRC-32C of the file, so that a
torn or changed file is never taken for a complete one. `write` is a hash of the write id of a
commit. The paths of segments are in `segment_path.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import google_crc32c

from klog.connector.root_files import KLOG, TOPICS

MAX_VERSION = 10**10 - 1
"""The digits that the name of a segment has for a version: a commit a millisecond for 115 days, or
ten a second for 31 years. A commit above it is an error."""

_COMMIT = re.compile(r"(?P<version>[0-9]{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>[0-9]{20})-(?P<size>[0-9]{12})-(?P<crc>[0-9a-f]{8})\.parquet"
)
_SIDECAR = re.compile(
    r"(?P<version>[0-9]{20})-(?P<write>[0-9a-f]{16})"
    r"-(?P<size>[0-9]{12})-(?P<crc>[0-9a-f]{8})\.parquet"
)
_EXPIRATION = re.compile(r"[0-9]{20}")
_LEASE = re.compile(r"[A-Za-z0-9_-]{8,64}\.json")


@dataclass(frozen=True, slots=True, order=True)
class CheckpointName:
    """The name of a checkpoint or of a part of one.

    `version` is the version of the state that its writer had.
    """

    version: int
    size_bytes: int
    crc32c: int

    def __str__(self) -> str:
        """Return the name of the file."""
        return f"{self.version:020d}-{self.size_bytes:012d}-{self.crc32c:08x}.parquet"


@dataclass(frozen=True, slots=True)
class SidecarName:
    """The name of a commit's sidecar; `write` is a hash of the commit's write id."""

    version: int
    write: str
    size_bytes: int
    crc32c: int

    def __str__(self) -> str:
        """Return the name of the file."""
        return f"{self.version:020d}-{self.write}-{self.size_bytes:012d}-{self.crc32c:08x}.parquet"


def is_intact(name: CheckpointName | SidecarName, data: bytes) -> bool:
    """Return whether these are the bytes of the file with this name: as many, with its CRC-32C.

    Args:
        name: The name of a checkpoint, of a part of one, or of a sidecar.
        data: The bytes.
    """
    return len(data) == name.size_bytes and google_crc32c.value(data) == name.crc32c


@dataclass(frozen=True, slots=True)
class TopicPaths:
    """Paths of one topic's commit log, as the store spells them."""

    root: str
    topic: str

    @property
    def directory(self) -> str:
        """Return the folder of the topic's commit log."""
        return f"{self.root}/{KLOG}/{TOPICS}/{self.topic}"

    @property
    def description(self) -> str:
        """Return the path of `topic.json`."""
        return f"{self.directory}/topic.json"

    @property
    def commits(self) -> str:
        """Return the folder of the commits."""
        return f"{self.directory}/log"

    def commit(self, version: int) -> str:
        """Return the path of a commit.

        Args:
            version: The version of the commit.
        """
        return f"{self.commits}/{commit_name(version)}"

    @property
    def checkpoints(self) -> str:
        """Return the folder of the checkpoints."""
        return f"{self.directory}/checkpoints"

    def checkpoint(self, name: CheckpointName) -> str:
        """Return the path of a checkpoint.

        Args:
            name: The name of the checkpoint.
        """
        return f"{self.checkpoints}/{name}"

    @property
    def parts(self) -> str:
        """Return the folder of the parts of checkpoints."""
        return f"{self.directory}/parts"

    def part(self, name: CheckpointName) -> str:
        """Return the path of a part of a checkpoint.

        Args:
            name: The name of the part.
        """
        return f"{self.parts}/{name}"

    @property
    def sidecars(self) -> str:
        """Return the folder of the sidecars of commits."""
        return f"{self.directory}/sidecars"

    def sidecar(self, name: SidecarName) -> str:
        """Return the path of a commit's sidecar.

        Args:
            name: The name of the sidecar.
        """
        return f"{self.sidecars}/{name}"

    @property
    def expirations(self) -> str:
        """Return the folder whose highest name is the last expired version."""
        return f"{self.directory}/gc"

    def expiration(self, version: int) -> str:
        """Return the path of the file that makes `version` the last expired one.

        Args:
            version: The last expired version.
        """
        return f"{self.expirations}/{version:020d}"

    @property
    def leases(self) -> str:
        """Return the folder of the snapshot leases."""
        return f"{self.directory}/pins"

    def lease(self, lease_id: str) -> str:
        """Return the path of a snapshot lease.

        Args:
            lease_id: The id of the lease.
        """
        return f"{self.leases}/{lease_id}.json"

    def data(self, file: str) -> str:
        """Return the path of a file of the root, such as a segment.

        Args:
            file: The path relative to the root.
        """
        return f"{self.root}/{file}"


def commit_name(version: int) -> str:
    """Return the name of a commit's file.

    Args:
        version: The version of the commit.
    """
    return f"{version:020d}.json"


def parse_commit_version(name: str) -> int | None:
    """Return the version of the commit with this file name; None if it is not such a name.

    Args:
        name: The name of a file in the folder.
    """
    match = _COMMIT.fullmatch(name)
    return None if match is None else _version(match["version"])


def parse_checkpoint_name(name: str) -> CheckpointName | None:
    """Parse the file name of a checkpoint or a part of one; None if it is not such a name.

    Args:
        name: The name of a file in the folder.
    """
    match = _CHECKPOINT.fullmatch(name)
    version = None if match is None else _version(match["version"])
    if match is None or version is None:
        return None
    return CheckpointName(version, int(match["size"]), int(match["crc"], 16))


def parse_sidecar_name(name: str) -> SidecarName | None:
    """Parse the file name of a sidecar; None if it is not such a name.

    Args:
        name: The name of a file in the folder.
    """
    match = _SIDECAR.fullmatch(name)
    version = None if match is None else _version(match["version"])
    if match is None or version is None:
        return None
    return SidecarName(version, match["write"], int(match["size"]), int(match["crc"], 16))


def parse_expiration_version(name: str) -> int | None:
    """Return the expired version that a file name says; None if it is not such a name.

    Args:
        name: The name of a file in the folder.
    """
    return _version(name) if _EXPIRATION.fullmatch(name) else None


def is_lease_name(name: str) -> bool:
    """Return whether a file name is one of a snapshot lease.

    Args:
        name: The name of a file in the folder.
    """
    return _LEASE.fullmatch(name) is not None


def _version(digits: str) -> int | None:
    version = int(digits)
    return version if version <= MAX_VERSION else None
