"""What lies on the simulated store: commits, the boundary, checkpoints that can be read.

The rule: this is looked up in the files, by nobody's turn, and klog's loads are not asked.
"""

from __future__ import annotations

from klog.connector.commit_log import state_checkpoint
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
    """Return the commits that are there."""
    found = map(version_of, disk.paths())
    return {version for version in found if version is not None}


def boundary(disk: Disk) -> int:
    """Return the highest boundary, -1 without one."""
    found = (parse_expiration_version(name_of(path)) for path in disk.paths() if "/gc/" in path)
    return max((version for version in found if version is not None), default=-1)


def newest_checkpoint(disk: Disk) -> CheckpointName | None:
    """Return the newest checkpoint that is whole."""
    paths = [path for path in disk.paths() if "/checkpoints/" in path]
    names = {path: name for path in paths if (name := parse_checkpoint_name(name_of(path)))}
    return max((name for path, name in names.items() if is_whole(disk, path)), default=None)


def is_whole(disk: Disk, path: str) -> bool:
    """Tell whether a checkpoint and all parts of it are there and as their names say."""
    data = disk.get(path)
    name = parse_checkpoint_name(name_of(path))
    if data is None or name is None or not state_checkpoint.is_intact(name, data):
        return False
    directory = path.rsplit("/", 2)[0]
    for part in state_checkpoint.read_parts(data):
        found = disk.get(f"{directory}/parts/{part.name}")
        if found is None or not state_checkpoint.is_intact(part.name, found):
            return False
    return True
