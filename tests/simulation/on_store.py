"""The files on the simulated store: commits, the last expired version, complete checkpoints.

The rule: functions look at the files directly, without an actor's turn and without klog's loads.
"""

from __future__ import annotations

from klog.connector.commit_log import commit_log_paths, state_checkpoint
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
    parse_checkpoint_name,
    parse_commit_version,
    parse_expiration_version,
)
from tests.simulation.simulated_disk import Disk


def name_of(path: str) -> str:
    """Return a file's name without its folder."""
    return path.rpartition("/")[2]


def version_of(path: str) -> int | None:
    """Return the version of a commit; None for a file of another kind."""
    return parse_commit_version(name_of(path)) if "/log/" in path else None


def versions(disk: Disk) -> set[int]:
    """Return the versions of the commits on the store."""
    candidates = map(version_of, disk.paths())
    return {version for version in candidates if version is not None}


def last_expired(disk: Disk) -> int:
    """Return the last expired version, -1 without one."""
    candidates = (
        parse_expiration_version(name_of(path)) for path in disk.paths() if "/gc/" in path
    )
    return max((version for version in candidates if version is not None), default=-1)


def newest_checkpoint(disk: Disk) -> CheckpointName | None:
    """Return the newest complete checkpoint."""
    paths = [path for path in disk.paths() if "/checkpoints/" in path]
    names = {path: name for path in paths if (name := parse_checkpoint_name(name_of(path)))}
    return max((name for path, name in names.items() if is_complete(disk, path)), default=None)


def is_complete(disk: Disk, path: str) -> bool:
    """Whether a checkpoint and all its parts exist and match the checksums in their names."""
    data = disk.get(path)
    name = parse_checkpoint_name(name_of(path))
    if data is None or name is None or not commit_log_paths.is_intact(name, data):
        return False
    directory = path.rsplit("/", 2)[0]
    for part in state_checkpoint.decode_parts(data):
        part_data = disk.get(f"{directory}/parts/{part.name}")
        if part_data is None or not commit_log_paths.is_intact(part.name, part_data):
            return False
    return True
