"""What of a topic's data may be deleted from a store, and the order in which it goes.

The rule (docs/commit-protocol.md, Vacuum): a segment that a commit took out goes when that is
longer ago than the readers' grace and no pin needs it. A file that no commit names goes when it was
born below the horizon, which a commit has raised first: whoever began before it can no longer
commit. Clocks decide when, never what.

What the commits on the store allow goes before vacuum puts its own, which takes space that a full
disk may not have. A link, and what is reached through one, stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.lost_commit_traces import list_partition_directories, traces_above
from klog.connector.commit_log.segment_path import parse_segment_path, segment_of_file
from klog.connector.commit_log.snapshot_leases import min_leased_version, read_leases
from klog.connector.commit_log.temporary_files import find_links, find_temporary_files, list_folders
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import DirectoryEntry

READER_GRACE_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class OrphanFiles:
    """Files of one topic that may go now, by their paths relative to the root.

    A segment stands for its indexes too; `files` are all that go, with their bytes.
    """

    removed: tuple[str, ...]
    """Segments that a commit took out, longer ago than the grace."""
    uncommitted: tuple[str, ...]
    """Segments that were never committed, and are too old to be."""
    temporary_files: tuple[str, ...] = ()
    """Temporary files of writers that were killed."""
    files: Mapping[str, int] = field(default_factory=dict)
    traces: Mapping[str, int] = field(default_factory=dict)
    """Files of versions above the last commit: commits were lost, and these stay."""
    linked: Mapping[str, str] = field(default_factory=dict)
    """What stays because of a link, and the link: files that might go else, and links in the
    folder of the topic's log."""

    def only(self, files: Mapping[str, int]) -> OrphanFiles:
        """Return what these of the files are of."""
        segments = {segment_of_file(file) for file in files}
        removed = tuple(file for file in self.removed if file in segments)
        orphans = tuple(file for file in self.uncommitted if file in segments)
        leftovers = tuple(file for file in self.temporary_files if file in files)
        return replace(
            self, removed=removed, uncommitted=orphans, temporary_files=leftovers, files=files
        )

    def joined(self, other: OrphanFiles) -> OrphanFiles:
        """Return what is in either."""
        return OrphanFiles(
            tuple(sorted({*self.removed, *other.removed})),
            tuple(sorted({*self.uncommitted, *other.uncommitted})),
            tuple(sorted({*self.temporary_files, *other.temporary_files})),
            {**self.files, **other.files},
            {**self.traces, **other.traces},
            {**self.linked, **other.linked},
        )


@dataclass(frozen=True, slots=True)
class OrphanFileScan:
    """Garbage, the state that tells it, and the segments that were listed before that."""

    files: OrphanFiles
    state: TopicState
    segments: frozenset[str]


def find_orphan_files(
    log: CommitLog,
    grace_ms: int = READER_GRACE_MS,
    horizon: int | None = None,
    *,
    discard_lost: bool = False,
) -> OrphanFileScan:
    """Find what may go under the horizon that was committed, or one to come. Nothing is changed.

    Files without a commit go only with `discard_lost` where the last commits were lost.
    """
    # The clock before the pins: who is not pinned by now began inside the grace, and this may take
    # long. The pins before the state: one that comes later is of a version at least as new.
    limit_ms = log.clock() - grace_ms
    pins = read_leases(log)
    pinned = min_leased_version(log, pins)
    listed, folders = list_partition_directories(log), list_folders(log)
    there = _by_segment(listed)
    state = log.load()  # After the listing: what was committed meanwhile is no orphan.
    live = set(state.segments["file"].to_pylist())
    gone = {row["file"]: row for row in state.removed.to_pylist()}
    horizon = state.vacuum_version if horizon is None else horizon
    removed, orphans = [], []
    for file in sorted(there.keys() - live):
        row = gone.get(file)
        if row is not None:
            if row["timestamp_ms"] <= limit_ms and (pinned is None or pinned >= row["version"]):
                removed.append(file)
            continue
        path = parse_segment_path(file)
        if path is not None and path.base_version is not None and path.base_version < horizon:
            orphans.append(file)
    versions = [(entry.name, version) for entry, version, _ in pins]
    above = traces_above(state.version, log.paths, listed, folders, versions)
    if above and not discard_lost:
        orphans = []  # Any may be of a commit that was lost.
    entries = {file: one for name in (*removed, *orphans) for file, one in there[name].items()}
    leftovers = find_temporary_files(log, listed, folders, horizon)
    entries |= leftovers
    left = {file: one.link.removeprefix(f"{log.paths.root}/") for file, one in entries.items()}
    left = {file: link for file, link in left.items() if link} | find_links(log, folders)
    found = OrphanFiles(
        tuple(removed), tuple(orphans), tuple(sorted(leftovers)), traces=above, linked=left
    )
    files = {file: one.size_bytes for file, one in entries.items() if not one.link}
    return OrphanFileScan(found.only(files), state, frozenset(there))


def files_of(log: CommitLog) -> set[str]:
    """List the segments of which a file lies in the topic's directories, lost partitions' too."""
    return set(_by_segment(list_partition_directories(log)))


def _by_segment(
    listed: list[tuple[str, list[DirectoryEntry]]],
) -> dict[str, dict[str, DirectoryEntry]]:
    """Give each segment's files. One may lack its log: its writer was killed."""
    found: dict[str, dict[str, DirectoryEntry]] = {}
    for directory, entries in listed:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            segment = None if entry.is_directory else segment_of_file(file)
            if segment is not None:
                found.setdefault(segment, {})[file] = entry
    return found
