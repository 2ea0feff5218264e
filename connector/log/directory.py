"""One partition's directory: which files are its segments, seen as a starting broker sees them.

The rule is `klog.logformat.listing`'s; here it meets the files of a store. Nothing is written.

A listing is not atomic: it can miss a file that a broker renames meanwhile (`.swap` to its final
name), and the records of that file would be missing. So a directory that a broker may be using is
listed until two listings in a row have the same logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.connector.store.files import Entry, Store
from klog.errors import NotRegularFileError
from klog.logformat.listing import LOG, arrange

LISTING_TRIES = 5
"""A broker renames and deletes files while they are read; a stale listing is repeated at once."""


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


def list_consistently(store: Store, path: str) -> list[Entry]:
    """Return a listing that does not miss a log because it was renamed meanwhile.

    Raises `FileNotFoundError` if there is no directory, or no two listings agree.
    """
    before = store.entries(path)
    for _ in range(LISTING_TRIES):
        now = store.entries(path)
        if _logs(now) == _logs(before):
            return now
        before = now
    raise FileNotFoundError(f"{path} changes as fast as it is listed")


def _logs(entries: list[Entry]) -> list[tuple[str, str]]:
    """Return the name and the identity of each log, with those of a finished cleaning."""
    return [
        (entry.name, entry.identity)
        for entry in entries
        if entry.name.endswith((f".{LOG}", f".{LOG}.swap"))
    ]


def read_directory(
    path: str, entries: list[Entry], next_offset: Callable[[Entry], int]
) -> Directory:
    """Arrange a listing. `next_offset` reads a `.swap` log's end, only where there is one.

    Raises `NotRegularFileError` for a segment whose log is no file: its size says nothing.
    """
    files = {entry.name: entry for entry in entries if not entry.is_directory}
    found = arrange(files, lambda name: next_offset(files[name]))
    segments = []
    for base, names in found.segments.items():
        log = files[names[LOG]]
        if log.special:
            raise NotRegularFileError(
                f"{log.path}: it is {log.special}, and a segment has to be there. Restore the "
                "segment from a replica or a backup"
            )
        indexes = {suffix: files[name] for suffix, name in names.items() if suffix != LOG}
        segments.append(Segment(base, log, indexes))
    snapshots = {offset: files[name] for offset, name in found.snapshots.items()}
    return Directory(path, tuple(segments), snapshots)
