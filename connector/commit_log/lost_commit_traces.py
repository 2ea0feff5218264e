"""Files that show that the last commits were lost: they have a later version in their names.

The rule (docs/durability.md, Files that are lost at rest): the base version of a segment is one
that its writer has read, a checkpoint and a part of one have a version that existed, a sidecar is
put by a writer that has read the version before, and a lease is on a version that a reader has
loaded. If one of them is above the last commit, the commits up to its version existed and are lost;
or a loss of power undid a commit that was not acknowledged. Files are listed before the log is
loaded, so a file of a commit that lands meanwhile is not a trace.
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
"""The directories of a topic's partitions, and the entries of each."""


def find_lost_commit_traces(log: CommitLog) -> dict[str, int]:
    """List the topic's files, load its log, and return what `traces_above` does.

    Args:
        log: The log of the topic.
    """
    directories, folders, leases = (
        list_partition_directories(log),
        list_folders(log),
        leased_versions(log),
    )
    return traces_above(log.load().version, log.paths, directories, folders, leases)


def traces_above(
    version: int,
    paths: TopicPaths,
    directories: PartitionDirectories,
    folders: Folders,
    leases: Iterable[tuple[str, int]],
) -> dict[str, int]:
    """Return the files that show a version above the last one of a log.

    Args:
        version: The version of the last commit.
        paths: The paths of the log.
        directories: The directories of the topic's partitions.
        folders: The folders of the topic's log.
        leases: File name and version of each snapshot lease.

    Returns:
        By path relative to the root, the version that the file shows.
    """
    versions = {**dict(_of_segments(directories)), **dict(_of_folders(paths, folders))}
    lease_folder = paths.leases.removeprefix(f"{paths.root}/")
    versions |= {f"{lease_folder}/{name}": leased_version for name, leased_version in leases}
    return {
        file: shown_version
        for file, shown_version in sorted(versions.items())
        if shown_version > version
    }


def topics_without_log(root: KlogRoot, topics_with_log: Iterable[str]) -> list[str]:
    """Return the topics that have lost their whole log, and whose segments show that they had one.

    The root is listed once, and each directory of such a topic once.

    Args:
        root: The klog root.
        topics_with_log: The topics that have a log.
    """
    topics_with_log, lost_topics = set(topics_with_log), set()
    for entry in root.store.entries(root.path):
        topic_partition = parse_partition_directory(entry.name) if entry.is_directory else None
        if (
            topic_partition is not None
            and topic_partition.topic not in topics_with_log
            and topic_partition.topic not in lost_topics
        ):
            segments = root.store.entries(f"{root.path}/{entry.name}")
            if any(_of_segments([(entry.name, segments)])):
                lost_topics.add(topic_partition.topic)
    return sorted(lost_topics)


def list_partition_directories(log: CommitLog) -> PartitionDirectories:
    """List the directories of the topic's partitions, also those of earlier topics of its name.

    Args:
        log: The log of the topic.
    """
    return [
        (name, log.entries(f"{log.paths.root}/{name}"))
        for name in log.names(log.paths.root)
        if (topic_partition := parse_partition_directory(name)) is not None
        and topic_partition.topic == log.paths.topic
    ]


def _of_segments(directories: PartitionDirectories) -> Iterator[tuple[str, int]]:
    for directory, entries in directories:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            path = None if entry.is_directory else parse_segment_path(file)
            if path is not None and path.base_version:  # It is also 0 if there was no log yet.
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
    """Return the version that a file of a topic's log shows; None if it shows none."""
    if directory in (paths.checkpoints, paths.parts):
        checkpoint = parse_checkpoint_name(name)
        return None if checkpoint is None else checkpoint.version
    if directory == paths.sidecars:
        sidecar = parse_sidecar_name(name)
        return None if sidecar is None else sidecar.version - 1
    return None
