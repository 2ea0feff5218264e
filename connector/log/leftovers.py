"""Temporary files of killed writers beside a topic's files, on stores that write by renaming.

The rule: a temporary file is as old as what it was to become says. One of a segment carries the
segment's birth, one of a commit, a checkpoint or a boundary its version; when that is below the
committed horizon, it goes. Whoever still writes it could not commit any more (a birth below the
horizon) or puts a number that others have (a version below it): their put then fails with an error
and without effect. No clock and no time of the store's is asked. What carries neither (`topic.json`
and pins, some bytes each) stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.log.paths import (
    boundary_version,
    checkpoint_name,
    commit_version,
    segment_path,
)
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.files import Entry
from klog.connector.store.temporary import TEMPORARY

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex")


def find_leftovers(
    log: TopicLog, by_directory: Iterable[tuple[str, list[Entry]]], horizon: int
) -> dict[str, int]:
    """Find the temporary files that may go, by path relative to the root; gives their bytes.

    `by_directory` are the listed directories of the topic's partitions.
    """
    found: dict[str, int] = {}
    for directory, listed in by_directory:
        for entry in listed:
            final = _final_name(entry)
            segment = None if final is None else segment_of(f"{directory}/{final}")
            path = None if segment is None else segment_path(segment)
            if path is not None and path.birth is not None and path.birth < horizon:
                found[f"{directory}/{entry.name}"] = entry.size_bytes
    for place in (log.paths.commits, log.paths.checkpoints, log.paths.boundaries):
        for entry in log.entries(place):
            final = _final_name(entry)
            version = None if final is None else _version(final)
            if version is not None and version < horizon:
                relative = place.removeprefix(f"{log.paths.root}/")
                found[f"{relative}/{entry.name}"] = entry.size_bytes
    return found


def segment_of(file: str) -> str | None:
    """Give the path of the segment that a file or an index of one belongs to; None for others."""
    for suffix in SEGMENT_SUFFIXES:
        if file.endswith(suffix):
            segment = f"{file.removesuffix(suffix)}.log"
            return segment if segment_path(segment) is not None else None
    return None


def _final_name(entry: Entry) -> str | None:
    found = TEMPORARY.fullmatch(entry.name)
    return None if found is None or entry.is_directory else found["name"]


def _version(name: str) -> int | None:
    checkpoint = checkpoint_name(name)
    if checkpoint is not None:
        return checkpoint.version
    commit = commit_version(name)
    return boundary_version(name) if commit is None else commit
