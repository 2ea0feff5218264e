"""One partition's directory: which files are its segments, as a starting broker sees them.

The rule: `klog.logformat.broker_files.partition_listing` says which files count; here it meets the
files of a store. Nothing is written.

A listing is not atomic: it can miss a file that a broker renames meanwhile (`.swap` to its final
name), and the records of that file would be missing. So a directory that a broker may be using is
listed until two listings in a row have the same logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.store.readable_store import DirectoryEntry, ReadableStore
from klog.errors import NotRegularFileError
from klog.logformat.broker_files.metadata_files import parse_topic_id
from klog.logformat.broker_files.partition_listing import LOG, resolve_files

MAX_LISTING_TRIES = 5
"""A broker renames and deletes files while they are read; a stale listing is repeated at once."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment.

    Attributes:
        base_offset: From the name of the log.
        log: The log.
        indexes: The index files that exist, by suffix.
    """

    base_offset: int
    log: DirectoryEntry
    indexes: dict[str, DirectoryEntry]


@dataclass(frozen=True, slots=True)
class PartitionDirectory:
    """The files of a partition.

    Attributes:
        path: The directory.
        segments: In order of base offset.
        snapshots: Producer snapshots by offset.
    """

    path: str
    segments: tuple[Segment, ...]
    snapshots: dict[int, DirectoryEntry]


def list_consistently(store: ReadableStore, path: str) -> list[DirectoryEntry]:
    """Return a listing that does not miss a log because it was renamed meanwhile.

    Args:
        store: The store of the directory.
        path: The directory of a partition.

    Raises:
        FileNotFoundError: If there is no directory, or no two listings in a row agree.
    """
    previous = store.entries(path)
    for _ in range(MAX_LISTING_TRIES):
        entries = store.entries(path)
        if _logs(entries) == _logs(previous):
            return entries
        previous = entries
    raise FileNotFoundError(f"{path} changes faster than it can be listed")


def _logs(entries: list[DirectoryEntry]) -> list[tuple[str, str]]:
    """Return the name and the identity of each log, with those of a finished cleaning."""
    return [
        (entry.name, entry.identity)
        for entry in entries
        if entry.name.endswith((f".{LOG}", f".{LOG}.swap"))
    ]


def read_directory(
    path: str, entries: list[DirectoryEntry], next_offset: Callable[[DirectoryEntry], int]
) -> PartitionDirectory:
    """Return the segments and snapshots of a listing.

    Args:
        path: The directory.
        entries: Its listing.
        next_offset: Reads where a `.swap` log ends; called only if there is one.

    Raises:
        NotRegularFileError: If a segment's log is not a file: its size means nothing.
    """
    files = {entry.name: entry for entry in entries if not entry.is_directory}
    resolved = resolve_files(files, lambda name: next_offset(files[name]))
    segments = []
    for base_offset, names in resolved.segments.items():
        log = files[names[LOG]]
        if log.special:
            raise NotRegularFileError(
                f"{log.path}: it is {log.special}, and a segment has to be there. Restore the "
                "segment from a replica or a backup"
            )
        indexes = {suffix: files[name] for suffix, name in names.items() if suffix != LOG}
        segments.append(Segment(base_offset, log, indexes))
    snapshots = {offset: files[name] for offset, name in resolved.snapshots.items()}
    return PartitionDirectory(path, tuple(segments), snapshots)


def read_partition_topic_id(store: ReadableStore, directory: str) -> str:
    """Read the topic's id from a partition's directory; empty if there is none.

    Args:
        store: The store of the directory.
        directory: The directory of the partition.
    """
    data = read_companion_file(store, f"{directory}/partition.metadata")
    return "" if data is None else parse_topic_id(data) or ""
