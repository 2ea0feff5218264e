"""Temporary files of killed writers beside a topic's files, on stores that write by renaming.

The rule: a temporary file is as old as what it was to become says. One of a segment carries the
segment's birth, one of a commit or a checkpoint its version; when that is below the committed
horizon, it goes. One of a boundary goes when its version is below the newest boundary, for it is
always that of old commits. Whoever still writes it could not commit any more (a birth below the
horizon) or puts a number that others have (a version below it): their put then fails with an error
and without effect. No clock and no time of the store's is asked. What carries neither (`topic.json`
and pins, some bytes each) stays.
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
"""The folders beside a topic's `topic.json`, and what is in each."""


def list_folders(log: CommitLog) -> Folders:
    """List the folders of the topic's log: commits, checkpoints, boundaries, pins, ..."""
    return [
        (folder, log.entries(f"{log.paths.directory}/{folder.name}"))
        for folder in log.entries(log.paths.directory)
        if folder.is_directory
    ]


def find_links(log: CommitLog, folders: Folders) -> dict[str, str]:
    """Find the links by which the folders of the topic's log are reached, and those in them.

    Nothing behind them goes. They are relative to the root, and each stands for itself.
    """
    links = {one.link for folder, entries in folders for one in (folder, *entries) if one.link}
    own = (link.removeprefix(f"{log.paths.root}/") for link in sorted(links))
    return {link: link for link in own}


def find_temporary_files(
    log: CommitLog,
    by_directory: Iterable[tuple[str, list[DirectoryEntry]]],
    folders: Folders,
    horizon: int,
) -> dict[str, DirectoryEntry]:
    """Find the temporary files that may go, by path relative to the root.

    `by_directory` are the listed directories of the topic's partitions.
    """
    found: dict[str, DirectoryEntry] = {}
    for directory, listed in by_directory:
        for entry in listed:
            final = _final_name(entry)
            segment = None if final is None else segment_of_file(f"{directory}/{final}")
            path = None if segment is None else parse_segment_path(segment)
            if path is not None and path.base_version is not None and path.base_version < horizon:
                found[f"{directory}/{entry.name}"] = entry
    for folder, entries in folders:
        if f"{log.paths.directory}/{folder.name}" != log.paths.leases:
            found |= _of_versions(log, folder.name, entries, horizon)
    return found


def _final_name(entry: DirectoryEntry) -> str | None:
    found = TEMPORARY_NAME.fullmatch(entry.name)
    return None if found is None or entry.is_directory else found["name"]


def _of_versions(
    log: CommitLog, folder: str, entries: list[DirectoryEntry], horizon: int
) -> dict[str, DirectoryEntry]:
    """Find those of a folder whose files are called by versions: commits, checkpoints, ..."""
    directory = f"{log.paths.directory}/{folder}"
    if directory == log.paths.expirations:
        found = (parse_expiration_version(entry.name) for entry in entries)
        horizon = max((version for version in found if version is not None), default=-1)
    relative = directory.removeprefix(f"{log.paths.root}/")
    return {
        f"{relative}/{entry.name}": entry
        for entry in entries
        if (final := _final_name(entry)) is not None
        and (version := _VERSION.match(final)) is not None
        and int(version[0]) < horizon
    }
