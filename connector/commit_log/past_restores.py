"""The restores of a topic, and from which offset on they changed what a reader has seen.

The rule: a restore of version V by commit R makes a branch of the log. Up to the end that a
partition had at V the branch has the records of V; from there to its end at R is a hole. A restore
that is itself restored over is on no branch of today. A reader that has seen the log of one branch
finds the same records on another up to the lowest log end that a restore on only one of the two
has. Restores are few, and a state remembers the last `MAX_RESTORES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_RESTORES = 100
"""A state remembers so many. A reader that has seen none of them is taken for one of any branch."""


@dataclass(frozen=True, slots=True)
class PastRestore:
    """A restore that a commit made.

    Attributes:
        version: The version of its commit.
        restored_version: The version that it restored.
        log_end: The log ends as of that version, of the partitions that ended later.
    """

    version: int
    restored_version: int
    log_end: Mapping[int, int] = field(default_factory=dict)


def with_restore(restores: Sequence[PastRestore], restore: PastRestore) -> tuple[PastRestore, ...]:
    """Return the restores that a state remembers after another one.

    Args:
        restores: Those that it remembers, oldest first.
        restore: The new one.
    """
    return (*restores, restore)[-MAX_RESTORES:]


def last_restore(restores: Sequence[PastRestore]) -> int:
    """Return the version of the commit that restored last; 0 if there is none.

    Args:
        restores: The restores, oldest first.
    """
    return restores[-1].version if restores else 0


def first_changed_offset(
    restores: Sequence[PastRestore], seen_restore: int, partition: int
) -> int | None:
    """Return the offset from which a partition is not the one that a reader has seen.

    Args:
        restores: The restores of the topic, oldest first.
        seen_restore: The last restore when the reader saw the log, 0 if there was none.
        partition: The partition.

    Returns:
        The offset; None if the partition has all that the reader may have seen.
    """
    if last_restore(restores) == seen_restore:
        return None
    differing = _differing(restores, seen_restore)
    offsets = [
        restore.log_end[partition]
        for restore in restores
        if restore.version in differing and partition in restore.log_end
    ]
    return min(offsets, default=None)


def _differing(restores: Sequence[PastRestore], seen_restore: int) -> set[int]:
    """Return the restores on one of two branches alone: today's, and that of a reader.

    They are all restores if the reader's branch is not known.
    """
    versions = {restore.version for restore in restores}
    now, seen = _branch(restores, last_restore(restores)), _branch(restores, seen_restore)
    is_complete = len(restores) < MAX_RESTORES
    is_known = seen_restore in versions or (seen_restore == 0 and is_complete)
    if is_known and (is_complete or now.base_version == seen.base_version):
        return now.restores ^ seen.restores
    return versions


@dataclass(frozen=True, slots=True)
class _Branch:
    """The restores on a branch, and the version that the earliest known one of them restored."""

    restores: set[int]
    base_version: int


def _branch(restores: Sequence[PastRestore], version: int) -> _Branch:
    """Return the branch of a version: the last restore before it, and that one's branch."""
    branch: set[int] = set()
    for restore in reversed(restores):
        if restore.version <= version:
            branch.add(restore.version)
            version = restore.restored_version
    return _Branch(branch, version)
