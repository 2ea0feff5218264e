"""What of a topic's data may be deleted from a store, and the order in which it goes.

The rule (docs/commit-protocol.md, Garbage): a segment that a commit took out goes when that is
longer ago than the readers' grace and no pin needs it. A file that no commit names goes when it was
born below the horizon, which a commit has raised first: whoever began before it can no longer
commit. Clocks decide when, never what.

What the commits on the store allow goes before vacuum puts its own, which takes space that a full
disk may not have. A link, and what is reached through one, stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from klog.connector.log.cleaning import is_durable, version_before
from klog.connector.log.leftovers import find_leftovers, find_links, list_folders, segment_of
from klog.connector.log.max_sizes import MAX_COMMIT_BYTES
from klog.connector.log.operations import raise_horizon
from klog.connector.log.paths import segment_path
from klog.connector.log.pins import drop_pins, pinned_version, read_pins
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.log.traces import list_directories, traces_above
from klog.connector.store.files import Entry
from klog.errors import LostCommitError

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
    above: Mapping[str, int] = field(default_factory=dict)
    """Files of versions above the last commit: commits were lost, and these stay."""
    left: Mapping[str, str] = field(default_factory=dict)
    """What stays because of a link, and the link: files that might go else, and links in the
    folder of the topic's log."""

    def only(self, files: Mapping[str, int]) -> Garbage:
        """Return what these of the files are of."""
        segments = {segment_of(file) for file in files}
        removed = tuple(file for file in self.removed if file in segments)
        orphans = tuple(file for file in self.orphans if file in segments)
        leftovers = tuple(file for file in self.leftovers if file in files)
        return replace(self, removed=removed, orphans=orphans, leftovers=leftovers, files=files)

    def joined(self, other: Garbage) -> Garbage:
        """Return what is in either."""
        return Garbage(
            tuple(sorted({*self.removed, *other.removed})),
            tuple(sorted({*self.orphans, *other.orphans})),
            tuple(sorted({*self.leftovers, *other.leftovers})),
            {**self.files, **other.files},
            {**self.above, **other.above},
            {**self.left, **other.left},
        )


class Vacuum:
    """A vacuum of a topic in two steps: `deleted` is what has gone so far, whatever ends it."""

    def __init__(
        self, log: TopicLog, grace_ms: int = READER_GRACE_MS, *, discard_lost: bool = False
    ) -> None:
        """Take the log; nothing is read yet.

        With `discard_lost`, commits that were lost at the end of the log are not to come back.
        """
        self._log, self._grace_ms, self._discard_lost = log, grace_ms, discard_lost
        self.deleted = Garbage((), ())

    def free(self) -> None:
        """Delete what the commits on the store allow: it takes no space."""
        log = self._log
        state = log.load()
        found = find_garbage(log, self._grace_ms, discard_lost=self._discard_lost)
        aged = state.removed.filter(
            pc.less_equal(state.removed["timestamp_ms"], log.clock() - self._grace_ms)
        )
        # Removed ones whose files a vacuum before this deleted need not be known any more. Not
        # before the grace ends: a store may list a file late, and an unknown one would be taken
        # for an orphan. The state is older than the listing: what it removed had been written.
        self._forget = [file for file in aged["file"].to_pylist() if file not in found.segments]
        self._horizon = max(version_before(log, state, log.clock() - self._grace_ms), 0)
        self._state, self._above = found.state, found.garbage.above
        self.deleted = Garbage((), (), above=self._above)
        # Another's commit may be read before it is durable, and a loss of power may then undo it.
        tip = log.paths.commit(found.state.version)
        if found.garbage.files and is_durable(
            log, tip, lambda: log.store.read(tip, MAX_COMMIT_BYTES)
        ):
            self._delete(found.garbage)

    def finish(self, attempt: Attempt) -> None:
        """Raise the horizon, and delete what that allows.

        Raises `LostCommitError` where files show that the last commits were lost: nothing is
        committed in their place.
        """
        log = self._log
        if self._above and not self._discard_lost:
            file, version = max(self._above.items(), key=lambda one: one[1])
            raise LostCommitError(
                f"{log.paths.data(file)}: the log ends at version {self._state.version}, and this "
                f"file shows that version {version} was made: its last commits are lost. No file "
                f"without a commit was deleted. Restore the commits of {log.paths.commits} from a "
                "copy, or give --discard-lost if they are not to come back"
            )
        log.commit(self._state, raise_horizon(self._horizon, self._forget), attempt)
        found = find_garbage(log, self._grace_ms, discard_lost=self._discard_lost)
        self._delete(found.garbage)
        drop_pins(log, log.clock() - self._grace_ms)

    def _delete(self, garbage: Garbage) -> None:
        gone: dict[str, int] = {}
        try:
            for file, size_bytes in garbage.files.items():
                self._log.store.delete(self._log.paths.data(file))
                gone[file] = size_bytes
        finally:
            self.deleted = self.deleted.joined(garbage.only(gone))


def vacuum(
    log: TopicLog,
    attempt: Attempt,
    grace_ms: int = READER_GRACE_MS,
    *,
    discard_lost: bool = False,
) -> Garbage:
    """Delete the topic's garbage, and raise the horizon; gives what was deleted."""
    run = Vacuum(log, grace_ms, discard_lost=discard_lost)
    run.free()
    run.finish(attempt)
    return run.deleted


def would_vacuum(
    log: TopicLog, grace_ms: int = READER_GRACE_MS, *, discard_lost: bool = False
) -> Garbage:
    """Find what `vacuum` would delete if it ran now; nothing is written, the horizon neither."""
    state = log.load()
    horizon = version_before(log, state, log.clock() - grace_ms)
    horizon = max(horizon, state.horizon)
    return find_garbage(log, grace_ms, horizon, discard_lost=discard_lost).garbage


@dataclass(frozen=True, slots=True)
class Found:
    """Garbage, the state that tells it, and the segments that were listed before that."""

    garbage: Garbage
    state: State
    segments: frozenset[str]


def find_garbage(
    log: TopicLog,
    grace_ms: int = READER_GRACE_MS,
    horizon: int | None = None,
    *,
    discard_lost: bool = False,
) -> Found:
    """Find what may go under the horizon that was committed, or one to come. Nothing is changed.

    Files without a commit go only with `discard_lost` where the last commits were lost.
    """
    # The clock before the pins: who is not pinned by now began inside the grace, and this may take
    # long. The pins before the state: one that comes later is of a version at least as new.
    limit_ms = log.clock() - grace_ms
    pins = read_pins(log)
    pinned = pinned_version(log, pins)
    listed, folders = list_directories(log), list_folders(log)
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
    versions = [(entry.name, version) for entry, version, _ in pins]
    above = traces_above(state.version, log.paths, listed, folders, versions)
    if above and not discard_lost:
        orphans = []  # Any may be of a commit that was lost.
    entries = {file: one for name in (*removed, *orphans) for file, one in there[name].items()}
    leftovers = find_leftovers(log, listed, folders, horizon)
    entries |= leftovers
    left = {file: one.link.removeprefix(f"{log.paths.root}/") for file, one in entries.items()}
    left = {file: link for file, link in left.items() if link} | find_links(log, folders)
    found = Garbage(
        tuple(removed), tuple(orphans), tuple(sorted(leftovers)), above=above, left=left
    )
    files = {file: one.size_bytes for file, one in entries.items() if not one.link}
    return Found(found.only(files), state, frozenset(there))


def files_of(log: TopicLog) -> set[str]:
    """List the segments of which a file lies in the topic's directories, lost partitions' too."""
    return set(_by_segment(list_directories(log)))


def _by_segment(listed: list[tuple[str, list[Entry]]]) -> dict[str, dict[str, Entry]]:
    """Give each segment's files. One may lack its log: its writer was killed."""
    found: dict[str, dict[str, Entry]] = {}
    for directory, entries in listed:
        for entry in entries:
            file = f"{directory}/{entry.name}"
            segment = None if entry.is_directory else segment_of(file)
            if segment is not None:
                found.setdefault(segment, {})[file] = entry
    return found
