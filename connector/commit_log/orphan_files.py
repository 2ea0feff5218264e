"""The files of a topic that may be deleted, and the order in which vacuum deletes them.

The rule (docs/commit-protocol.md, Vacuum): a segment that a commit removed may be deleted if the
removal is older than the readers' grace, no snapshot lease needs the segment, and the commit is at
or below the vacuum version, which a commit has raised first: a restore no longer brings the segment
back. A file that no commit names may be deleted if its base version is below the vacuum version: a
writer that began before it can no longer commit. Clocks decide when, never what.

Files that the commits on the store allow to delete are deleted before vacuum puts its own commit,
which needs space that a full disk may not have. A link stays, and so do files that are reached
through one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit_history import version_at_time
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.lost_commit_traces import list_partition_directories, traces_above
from klog.connector.commit_log.past_retention import removed_file_retention_ms
from klog.connector.commit_log.segment_path import parse_segment_path, segment_of_file
from klog.connector.commit_log.snapshot_leases import Lease, min_leased_version, read_leases
from klog.connector.commit_log.temporary_files import find_links, find_temporary_files, list_folders
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.vacuum_times import WRITER_GRACE_MS
from klog.connector.store.readable_store import DirectoryEntry
from klog.logformat.broker_files.file_names import MAX_OFFSET


@dataclass(frozen=True, slots=True)
class WaitingFiles:
    """Files of removed segments that stay for readers, and until when, in ms since the epoch.

    Attributes:
        files: How many.
        size_bytes: Their bytes.
        first_ms: When the first of them may be deleted; None without a file.
        last_ms: When the last of them may be deleted; None if a lease that cannot be read keeps it.
    """

    files: int = 0
    size_bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OrphanFiles:
    """Files of one topic that may be deleted, by their paths relative to the root.

    Attributes:
        removed: Segments that a commit removed, longer ago than the grace.
        uncommitted: Segments that were never committed, and can no longer be.
        temporary_files: Temporary files of writers that were killed.
        files: All files to delete, with their bytes. A segment includes its indexes.
        traces: Files of versions above the last commit, with that version: commits were lost, and
            these files stay.
        linked: Files that stay because of a link, and the link; also links in the folder of the
            topic's log.
        waiting: Files of removed segments that stay for readers.
    """

    removed: tuple[str, ...]
    uncommitted: tuple[str, ...]
    temporary_files: tuple[str, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    traces: Mapping[str, int] = field(default_factory=dict)
    linked: Mapping[str, str] = field(default_factory=dict)
    waiting: WaitingFiles = WaitingFiles()

    def only(self, files: Mapping[str, int]) -> OrphanFiles:
        """Return the part of these that some files belong to.

        Args:
            files: The files by path, with their bytes.
        """
        segments = {segment_of_file(file) for file in files}
        removed = tuple(file for file in self.removed if file in segments)
        uncommitted = tuple(file for file in self.uncommitted if file in segments)
        temporary_files = tuple(file for file in self.temporary_files if file in files)
        return replace(
            self,
            removed=removed,
            uncommitted=uncommitted,
            temporary_files=temporary_files,
            files=files,
        )

    def joined(self, other: OrphanFiles) -> OrphanFiles:
        """Return the files of both.

        Args:
            other: Other files of the topic.
        """
        return OrphanFiles(
            tuple(sorted({*self.removed, *other.removed})),
            tuple(sorted({*self.uncommitted, *other.uncommitted})),
            tuple(sorted({*self.temporary_files, *other.temporary_files})),
            {**self.files, **other.files},
            {**self.traces, **other.traces},
            {**self.linked, **other.linked},
            other.waiting if other.waiting.files else self.waiting,
        )


@dataclass(frozen=True, slots=True)
class OrphanFileScan:
    """Orphan files, the state that they were found by, and the segments that were listed before."""

    files: OrphanFiles
    state: TopicState
    segments: frozenset[str]
    waiting_indexes: OrphanFiles
    """The indexes of the segments that may be deleted once the vacuum version is raised: on a full
    disk they make room for the commit that raises it."""


def find_orphan_files(
    log: CommitLog,
    grace_ms: int | None = None,
    vacuum_version: int | None = None,
    *,
    discard_lost: bool = False,
) -> OrphanFileScan:
    """Find the files that vacuum may delete. Nothing is changed.

    Args:
        log: The log of the topic.
        grace_ms: How long a removed segment stays for readers; None for what the topic's config
            says.
        vacuum_version: The vacuum version to go by; None for the one that was committed.
        discard_lost: Also return uncommitted segments if the last commits were lost. They may
            belong to those commits.
    """
    # The clock before the leases: a reader without a lease by now began inside the grace, and this
    # may take long. The leases before the state: a later lease has a version at least as new.
    now_ms = log.clock()
    leases = read_leases(log)
    min_leased = min_leased_version(log, leases)
    directories, folders = list_partition_directories(log), list_folders(log)
    by_segment = _by_segment(directories)
    # After the listing: a segment that was committed meanwhile is not an orphan.
    state = log.load()
    vacuum_version = state.vacuum_version if vacuum_version is None else vacuum_version
    not_live = by_segment.keys() - set(state.segments["file"].to_pylist())
    retention_ms = removed_file_retention_ms(state, grace_ms)
    aged = _aged_removals(not_live, state, now_ms - retention_ms, min_leased)
    removed = tuple(sorted(file for file, version in aged.items() if version <= vacuum_version))
    uncommitted = _uncommitted_segments(not_live, state, vacuum_version)
    versions = [(lease.entry.name, lease.version) for lease in leases]
    traces = traces_above(state.version, log.paths, directories, folders, versions)
    if traces and not discard_lost:
        uncommitted = ()  # Each may belong to a lost commit.
    entries = {
        file: entry
        for segment in (*removed, *uncommitted)
        for file, entry in by_segment[segment].items()
    }
    temporary_files = find_temporary_files(log, directories, folders, vacuum_version)
    entries |= temporary_files
    linked = {
        file: entry.link.removeprefix(f"{log.paths.root}/") for file, entry in entries.items()
    }
    linked = {file: link for file, link in linked.items() if link} | find_links(log, folders)
    until_ms = _waiting_removals(not_live - aged.keys(), state, retention_ms, leases)
    waiting = _waiting_files(by_segment, until_ms)
    orphans = OrphanFiles(
        removed, uncommitted, tuple(sorted(temporary_files)), {}, traces, linked, waiting
    )
    files = {file: entry.size_bytes for file, entry in entries.items() if not entry.link}
    indexes = _indexes(by_segment, aged.keys() - set(removed))
    return OrphanFileScan(orphans.only(files), state, frozenset(by_segment), indexes)


def next_vacuum_version(log: CommitLog, state: TopicState, grace_ms: int | None) -> int:
    """Return the vacuum version that a vacuum commits: the last one that is older than the grace.

    Writers have the grace of readers if that is longer: a restore needs segments that were removed
    above the vacuum version.

    Args:
        log: The log of the topic.
        state: The state of the topic.
        grace_ms: How long writers may take, and a removed segment stays for readers; None for a
            day, and for what the topic's config says.
    """
    now_ms, retention_ms = log.clock(), removed_file_retention_ms(state, grace_ms)
    limit_ms = now_ms - retention_ms
    aged = state.removed.filter(pc.less_equal(state.removed["timestamp_ms"], limit_ms))
    # The time of a removal is known when the commit itself has expired.
    removal = pc.max(aged["version"]).as_py() or 0
    if grace_ms is None:
        limit_ms = now_ms - max(retention_ms, WRITER_GRACE_MS)
    return max(version_at_time(log, state, limit_ms), removal, state.vacuum_version)


def _aged_removals(
    files: Set[str], state: TopicState, removed_before_ms: int, min_leased: int | None
) -> dict[str, int]:
    """Return the removed segments whose grace is over and that no snapshot lease is older than.

    Each has the version of the commit that removed it.
    """
    return {
        row["file"]: row["version"]
        for row in state.removed.to_pylist()
        if row["file"] in files
        and row["timestamp_ms"] <= removed_before_ms
        and (min_leased is None or min_leased >= row["version"])
    }


def _waiting_removals(
    files: Set[str], state: TopicState, retention_ms: int, leases: Sequence[Lease]
) -> dict[str, int]:
    """Return until when each removed segment stays: its grace, or a lease that ends later."""
    return {
        row["file"]: max(
            [row["timestamp_ms"] + retention_ms]
            + [lease.ends_ms for lease in leases if lease.version < row["version"]]
        )
        for row in state.removed.to_pylist()
        if row["file"] in files
    }


def _waiting_files(
    by_segment: Mapping[str, Mapping[str, DirectoryEntry]], until_ms: Mapping[str, int]
) -> WaitingFiles:
    """Add up the files of segments that stay, a segment's indexes with it."""
    entries = [
        entry for segment in until_ms for entry in by_segment[segment].values() if not entry.link
    ]
    if not entries:
        return WaitingFiles()
    first_ms, last_ms = min(until_ms.values()), max(until_ms.values())
    return WaitingFiles(
        len(entries),
        sum(entry.size_bytes for entry in entries),
        first_ms,
        None if last_ms == MAX_OFFSET else last_ms,
    )


def _indexes(
    by_segment: Mapping[str, Mapping[str, DirectoryEntry]], segments: Set[str]
) -> OrphanFiles:
    """Return the indexes of segments, without the segments' logs."""
    files = {
        file: entry.size_bytes
        for segment in segments
        for file, entry in by_segment[segment].items()
        if file != segment and not entry.link
    }
    return OrphanFiles(tuple(segments), ()).only(files)


def _uncommitted_segments(
    files: Set[str], state: TopicState, vacuum_version: int
) -> tuple[str, ...]:
    """Return the segments of writes that no commit can take any more, by their base version."""
    versions = {
        file: path.base_version
        for file in files - set(state.removed["file"].to_pylist())
        if (path := parse_segment_path(file)) is not None
    }
    return tuple(
        sorted(
            file
            for file, version in versions.items()
            if version is not None and version < vacuum_version
        )
    )


def _by_segment(
    directories: list[tuple[str, list[DirectoryEntry]]],
) -> dict[str, dict[str, DirectoryEntry]]:
    """Return each segment's files. The log may be missing: its writer was killed."""
    by_segment: dict[str, dict[str, DirectoryEntry]] = {}
    for directory, entries in directories:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            segment = None if entry.is_directory else segment_of_file(file)
            if segment is not None:
                by_segment.setdefault(segment, {})[file] = entry
    return by_segment
