"""One partition's directory: which files are its segments, seen as a starting broker sees them.

The rule is `klog.logformat.listing`'s; here it meets the files of a store. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.connector.store.files import Entry
from klog.logformat.listing import LOG, arrange


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its log, and its indexes by suffix where they exist."""

    base_offset: int
    log: Entry
    indexes: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Directory:
    """What a partition's directory holds: segments by base offset, producer snapshots by offset."""

    path: str
    segments: tuple[Segment, ...]
    snapshots: dict[int, Entry]


def read_directory(
    path: str, entries: list[Entry], next_offset: Callable[[Entry], int]
) -> Directory:
    """Arrange a listing. `next_offset` reads a `.swap` log's end, only where there is one."""
    files = {entry.name: entry for entry in entries if not entry.is_directory}
    found = arrange(files, lambda name: next_offset(files[name]))
    segments = []
    for base, names in found.segments.items():
        indexes = {suffix: files[name] for suffix, name in names.items() if suffix != LOG}
        segments.append(Segment(base, files[names[LOG]], indexes))
    snapshots = {offset: files[name] for offset, name in found.snapshots.items()}
    return Directory(path, tuple(segments), snapshots)
