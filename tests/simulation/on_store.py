"""What lies on the simulated store: commits, the boundary, checkpoints that can be read.

The rule: this is looked up in the files, by nobody's turn, and klog's loads are not asked.
"""

from __future__ import annotations

from klog.connector.log import checkpoint
from klog.connector.log.paths import (
    CheckpointName,
    boundary_version,
    checkpoint_name,
    commit_version,
)
from tests.simulation.disk import Disk


def name_of(path: str) -> str:
    """Return a file's name without its folder."""
    return path.rpartition("/")[2]


def version_of(path: str) -> int | None:
    """Return the version of a commit; None for a file of another kind."""
    return commit_version(name_of(path)) if "/log/" in path else None


def versions(disk: Disk) -> set[int]:
    """Return the commits that are there."""
    found = map(version_of, disk.paths())
    return {version for version in found if version is not None}


def boundary(disk: Disk) -> int:
    """Return the highest boundary, -1 without one."""
    found = (boundary_version(name_of(path)) for path in disk.paths() if "/gc/" in path)
    return max((version for version in found if version is not None), default=-1)


def newest_checkpoint(disk: Disk) -> CheckpointName | None:
    """Return the newest checkpoint that is whole."""
    paths = [path for path in disk.paths() if "/checkpoints/" in path]
    names = {path: name for path in paths if (name := checkpoint_name(name_of(path)))}
    return max((name for path, name in names.items() if is_whole(disk, path)), default=None)


def is_whole(disk: Disk, path: str) -> bool:
    """Tell whether a checkpoint and all parts of it are there and as their names say."""
    data = disk.get(path)
    name = checkpoint_name(name_of(path))
    if data is None or name is None or not checkpoint.is_whole(name, data):
        return False
    directory = path.rsplit("/", 2)[0]
    for part in checkpoint.parts_of(data):
        found = disk.get(f"{directory}/parts/{part.name}")
        if found is None or not checkpoint.is_whole(part.name, found):
            return False
    return True
