"""What lost commits leave behind when they were the last ones: files of a later version.

The rule (docs/durability.md, Lost files): a segment is born at a version that was read, a
checkpoint and a part of one are of a version that was made, a sidecar is put by who has read the
version before its own, and a lease is on a version that was loaded. Where one of them is above the
last commit, the commits up to its version were made and are lost; or a loss of power undid one
that nobody was told of. Files are listed before the log is loaded: what is committed meanwhile is
no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klog.connector.log.leftovers import Folders, list_folders
from klog.connector.log.paths import TopicPaths, checkpoint_name, segment_path, sidecar_name
from klog.connector.log.pins import pinned_versions
from klog.connector.log.root import KlogRoot
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.files import Entry
from klog.logformat.names import partition_of_directory

Directories = list[tuple[str, list[Entry]]]
"""The directories of a topic's partitions, and what is in each."""


def find_traces(log: TopicLog) -> dict[str, int]:
    """List the topic's files, load its log, and return what `traces_above` does."""
    directories, folders, pinned = list_directories(log), list_folders(log), pinned_versions(log)
    return traces_above(log.load().version, log.paths, directories, folders, pinned)


def find_traces_above(log: TopicLog, version: int) -> dict[str, int]:
    """List the topic's files, and return what `traces_above` does."""
    directories, folders, pinned = list_directories(log), list_folders(log), pinned_versions(log)
    return traces_above(version, log.paths, directories, folders, pinned)


def traces_above(
    version: int,
    paths: TopicPaths,
    directories: Directories,
    folders: Folders,
    pinned: Iterable[tuple[str, int]],
) -> dict[str, int]:
    """Return by file, relative to the root, the version above this one that it shows."""
    shown = {**dict(_of_segments(directories)), **dict(_of_folders(paths, folders))}
    leases = paths.pins.removeprefix(f"{paths.root}/")
    shown |= {f"{leases}/{name}": pinned_version for name, pinned_version in pinned}
    return {file: one for file, one in sorted(shown.items()) if one > version}


def topics_without_log(root: KlogRoot) -> list[str]:
    """Return the topics of whose log nothing is left, and which have segments that show one.

    One listing of the root, and one of each directory of such a topic.
    """
    known, lost = set(root.topic_names()), set()
    for entry in root.store.entries(root.path):
        owner = partition_of_directory(entry.name) if entry.is_directory else None
        if owner is not None and owner[0] not in known and owner[0] not in lost:
            segments = root.store.entries(f"{root.path}/{entry.name}")
            if any(_of_segments([(entry.name, segments)])):
                lost.add(owner[0])
    return sorted(lost)


def list_directories(log: TopicLog) -> Directories:
    """List the directories of the topic's partitions, those of earlier topics of its name too."""
    return [
        (name, log.entries(f"{log.paths.root}/{name}"))
        for name in log.names(log.paths.root)
        if (owner := partition_of_directory(name)) is not None and owner[0] == log.paths.topic
    ]


def _of_segments(directories: Directories) -> Iterator[tuple[str, int]]:
    for directory, entries in directories:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            path = None if entry.is_directory else segment_path(file)
            if path is not None and path.birth:  # 0 also where there was no log yet.
                yield file, path.birth


def _of_folders(paths: TopicPaths, folders: Folders) -> Iterator[tuple[str, int]]:
    for folder, entries in folders:
        directory = f"{paths.directory}/{folder.name}"
        relative = directory.removeprefix(f"{paths.root}/")
        for entry in entries:
            version = _version_of(paths, directory, entry.name)
            if version is not None:
                yield f"{relative}/{entry.name}", version


def _version_of(paths: TopicPaths, directory: str, name: str) -> int | None:
    """Return the version that a file of a topic's log shows to have been made."""
    if directory in (paths.checkpoints, paths.parts):
        checkpoint = checkpoint_name(name)
        return None if checkpoint is None else checkpoint.version
    if directory == paths.sidecars:
        sidecar = sidecar_name(name)
        return None if sidecar is None else sidecar.version - 1
    return None
