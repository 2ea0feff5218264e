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

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    TopicPaths,
    parse_checkpoint_name,
    parse_sidecar_name,
)
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.snapshot_leases import leased_versions
from klog.connector.commit_log.temporary_files import Folders, list_folders
from klog.connector.store.readable_store import DirectoryEntry
from klog.logformat.broker_files.file_names import parse_partition_directory

PartitionDirectories = list[tuple[str, list[DirectoryEntry]]]
"""The directories of a topic's partitions, and what is in each."""


def find_lost_commit_traces(log: CommitLog) -> dict[str, int]:
    """List the topic's files, load its log, and return what `traces_above` does."""
    directories, folders, pinned = (
        list_partition_directories(log),
        list_folders(log),
        leased_versions(log),
    )
    return traces_above(log.load().version, log.paths, directories, folders, pinned)


def traces_above(
    version: int,
    paths: TopicPaths,
    directories: PartitionDirectories,
    folders: Folders,
    pinned: Iterable[tuple[str, int]],
) -> dict[str, int]:
    """Return by file, relative to the root, the version above this one that it shows."""
    shown = {**dict(_of_segments(directories)), **dict(_of_folders(paths, folders))}
    leases = paths.leases.removeprefix(f"{paths.root}/")
    shown |= {f"{leases}/{name}": pinned_version for name, pinned_version in pinned}
    return {file: one for file, one in sorted(shown.items()) if one > version}


def topics_without_log(root: KlogRoot, known: Iterable[str]) -> list[str]:
    """Return the topics of whose log nothing is left, and which have segments that show one.

    `known` are those that have a log. One listing of the root, and one of each directory of such a
    topic.
    """
    known, lost = set(known), set()
    for entry in root.store.entries(root.path):
        owner = parse_partition_directory(entry.name) if entry.is_directory else None
        if owner is not None and owner[0] not in known and owner[0] not in lost:
            segments = root.store.entries(f"{root.path}/{entry.name}")
            if any(_of_segments([(entry.name, segments)])):
                lost.add(owner[0])
    return sorted(lost)


def list_partition_directories(log: CommitLog) -> PartitionDirectories:
    """List the directories of the topic's partitions, those of earlier topics of its name too."""
    return [
        (name, log.entries(f"{log.paths.root}/{name}"))
        for name in log.names(log.paths.root)
        if (owner := parse_partition_directory(name)) is not None and owner[0] == log.paths.topic
    ]


def _of_segments(directories: PartitionDirectories) -> Iterator[tuple[str, int]]:
    for directory, entries in directories:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            path = None if entry.is_directory else parse_segment_path(file)
            if path is not None and path.base_version:  # 0 also where there was no log yet.
                yield file, path.base_version


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
        checkpoint = parse_checkpoint_name(name)
        return None if checkpoint is None else checkpoint.version
    if directory == paths.sidecars:
        sidecar = parse_sidecar_name(name)
        return None if sidecar is None else sidecar.version - 1
    return None
