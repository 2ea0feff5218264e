"""Temporary files of killed writers in a topic's folders, on stores that write by renaming.

The rule: a temporary file is as old as the name of the final file says. That of a segment has a
base version, that of a commit or a checkpoint its version; if this is below the committed vacuum
version, vacuum deletes the file. The temporary file of an expired version is deleted if its version
is below the last expired one, for it is always that of old commits. A process that still writes a
deleted file can no longer commit (its base version is too low), or puts a number that others have
(its version is too low): its put then fails with an error and without effect. No clock is read, nor
a time of the store's. Files without a version (`topic.json` and leases, some bytes each) stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import parse_expiration_version
from klog.connector.commit_log.segment_path import parse_segment_path, segment_of_file
from klog.connector.store.readable_store import DirectoryEntry
from klog.connector.store.temporary_names import TEMPORARY_NAME

_VERSION = re.compile(r"[0-9]{20}(?![0-9])")


Folders = list[tuple[DirectoryEntry, list[DirectoryEntry]]]
"""The folders next to a topic's `topic.json`, and the entries of each."""


def list_folders(log: CommitLog) -> Folders:
    """List the folders of the topic's log: commits, checkpoints, expired versions, leases, ...

    Args:
        log: The log of the topic.
    """
    return [
        (folder, log.entries(f"{log.paths.directory}/{folder.name}"))
        for folder in log.entries(log.paths.directory)
        if folder.is_directory
    ]


def find_links(log: CommitLog, folders: Folders) -> dict[str, str]:
    """Find the links that lead to the folders of the topic's log, and those in them.

    Files that are reached through them are not deleted.

    Args:
        log: The log of the topic.
        folders: The folders.

    Returns:
        Each link, relative to the root, by itself.
    """
    links = {
        entry.link for folder, entries in folders for entry in (folder, *entries) if entry.link
    }
    relative = (link.removeprefix(f"{log.paths.root}/") for link in sorted(links))
    return {link: link for link in relative}


def find_temporary_files(
    log: CommitLog,
    by_directory: Iterable[tuple[str, list[DirectoryEntry]]],
    folders: Folders,
    vacuum_version: int,
) -> dict[str, DirectoryEntry]:
    """Find the temporary files that vacuum may delete.

    Args:
        log: The log of the topic.
        by_directory: The listed directories of the topic's partitions.
        folders: The folders of the topic's log.
        vacuum_version: Files of lower versions may be deleted.

    Returns:
        The entries by path relative to the root.
    """
    temporary_files: dict[str, DirectoryEntry] = {}
    for directory, entries in by_directory:
        for entry in entries:
            final = _final_name(entry)
            segment = None if final is None else segment_of_file(f"{directory}/{final}")
            path = None if segment is None else parse_segment_path(segment)
            if (
                path is not None
                and path.base_version is not None
                and path.base_version < vacuum_version
            ):
                temporary_files[f"{directory}/{entry.name}"] = entry
    for folder, entries in folders:
        if f"{log.paths.directory}/{folder.name}" != log.paths.leases:
            temporary_files |= _find_by_version(log, folder.name, entries, vacuum_version)
    return temporary_files


def _final_name(entry: DirectoryEntry) -> str | None:
    match = TEMPORARY_NAME.fullmatch(entry.name)
    return None if match is None or entry.is_directory else match["name"]


def _find_by_version(
    log: CommitLog, folder: str, entries: list[DirectoryEntry], limit_version: int
) -> dict[str, DirectoryEntry]:
    """Find the temporary files of a folder whose files are named after versions."""
    directory = f"{log.paths.directory}/{folder}"
    if directory == log.paths.expirations:
        versions = (parse_expiration_version(entry.name) for entry in entries)
        limit_version = max((version for version in versions if version is not None), default=-1)
    relative = directory.removeprefix(f"{log.paths.root}/")
    return {
        f"{relative}/{entry.name}": entry
        for entry in entries
        if (final := _final_name(entry)) is not None
        and (version := _VERSION.match(final)) is not None
        and int(version[0]) < limit_version
    }
