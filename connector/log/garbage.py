"""What of a topic's data may be deleted from a store, and the order in which it goes.

The rule (docs/commit-protocol.md, Garbage): a segment that a commit took out goes when that is
longer ago than the readers' grace and no pin needs it. A file that no commit names goes when it was
born below the horizon, which a commit has raised first: whoever began before it can no longer
commit. Clocks decide when, never what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from klog.connector.log.cleaning import version_before
from klog.connector.log.leftovers import find_leftovers, segment_of
from klog.connector.log.operations import raise_horizon
from klog.connector.log.paths import segment_path
from klog.connector.log.pins import drop_pins, pinned_version
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.store.files import Entry
from klog.logformat.names import partition_of_directory

READER_GRACE_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Garbage:
    """Files of one topic that may go now, by their paths relative to the root.

    A segment stands for its indexes too; `files` are all that go, with their bytes.
    """

    removed: tuple[str, ...]
    """Segments that a commit took out, longer ago than the grace."""
    orphans: tuple[str, ...]
    """Segments that were never committed, and are too old to be."""
    leftovers: tuple[str, ...] = ()
    """Temporary files of writers that were killed."""
    files: Mapping[str, int] = field(default_factory=dict)


def vacuum(log: TopicLog, attempt: Attempt, grace_ms: int = READER_GRACE_MS) -> Garbage:
    """Raise the horizon and delete the topic's garbage; gives what was deleted."""
    state = log.load()
    there = files_of(log)
    aged = state.removed.filter(
        pc.less_equal(state.removed["timestamp_ms"], log.clock() - grace_ms)
    )
    # Removed ones whose files a vacuum before this deleted need not be known any more. Not before
    # the grace ends: a store may list a file late, and an unknown one would be taken for an orphan.
    forget = [file for file in aged["file"].to_pylist() if file not in there]
    horizon = version_before(log, state, log.clock() - grace_ms)
    log.commit(state, raise_horizon(max(horizon, 0), forget), attempt)
    garbage = find_garbage(log, grace_ms)
    for file in garbage.files:
        log.store.delete(log.paths.data(file))
    drop_pins(log, log.clock() - grace_ms)
    return garbage


def would_vacuum(log: TopicLog, grace_ms: int = READER_GRACE_MS) -> Garbage:
    """Find what `vacuum` would delete if it ran now; nothing is written, the horizon neither."""
    state = log.load()
    horizon = version_before(log, state, log.clock() - grace_ms)
    return find_garbage(log, grace_ms, max(horizon, state.horizon))


def find_garbage(
    log: TopicLog, grace_ms: int = READER_GRACE_MS, horizon: int | None = None
) -> Garbage:
    """Find what may go under the horizon that was committed, or one to come. Nothing is changed."""
    # The clock before the pins: who is not pinned by now began inside the grace, and this may take
    # long. The pins before the state: one that comes later is of a version at least as new.
    limit_ms = log.clock() - grace_ms
    pinned = pinned_version(log)
    listed = _listed(log)
    there = _by_segment(listed)
    state = log.load()  # After the listing: what was committed meanwhile is no orphan.
    live = set(state.segments["file"].to_pylist())
    gone = {row["file"]: row for row in state.removed.to_pylist()}
    horizon = state.horizon if horizon is None else horizon
    removed, orphans = [], []
    for file in sorted(there.keys() - live):
        row = gone.get(file)
        if row is not None:
            if row["timestamp_ms"] <= limit_ms and (pinned is None or pinned >= row["version"]):
                removed.append(file)
            continue
        path = segment_path(file)
        if path is not None and path.birth is not None and path.birth < horizon:
            orphans.append(file)
    files = {file: size for one in (*removed, *orphans) for file, size in there[one].items()}
    leftovers = find_leftovers(log, listed, horizon)
    return Garbage(tuple(removed), tuple(orphans), tuple(leftovers), files | leftovers)


def files_of(log: TopicLog) -> set[str]:
    """List the segments of which a file lies in the topic's directories, lost partitions' too."""
    return set(_by_segment(_listed(log)))


def _listed(log: TopicLog) -> list[tuple[str, list[Entry]]]:
    """List the directories of the topic's partitions, those of earlier topics of its name too."""
    return [
        (name, log.entries(f"{log.paths.root}/{name}"))
        for name in log.names(log.paths.root)
        if _is_own(partition_of_directory(name), log)
    ]


def _by_segment(listed: list[tuple[str, list[Entry]]]) -> dict[str, dict[str, int]]:
    """Give each segment's files and their bytes. One may lack its log: its writer was killed."""
    found: dict[str, dict[str, int]] = {}
    for directory, entries in listed:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            segment = segment_of(file)
            if segment is not None:
                found.setdefault(segment, {})[file] = entry.size_bytes
    return found


def _is_own(owner: tuple[str, int] | None, log: TopicLog) -> bool:
    return owner is not None and owner[0] == log.paths.topic
