"""A broker's log directories, read as the broker left them (or has them): a raw root.

Partitions are found by directory name, segments by listing; nothing is written. A log begins at
the larger of its first segment and `log-start-offset-checkpoint`, and ends where `tail` says, or,
while a broker holds the directory, at the high watermark that it last checkpointed. Several
directories are one broker's `log.dirs`.

A broker renames and deletes files while they are read. If a file that was listed is gone, or is
another file, when it is opened, then the partition is listed again, a few times at once; after that
the whole root, with a growing pause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from klog.connector.log import stable, times
from klog.connector.log.adoption import is_under_way
from klog.connector.log.beside import read_beside
from klog.connector.log.directory import (
    LISTING_TRIES,
    Segment,
    list_consistently,
    read_directory,
)
from klog.connector.log.lock import is_held
from klog.connector.log.partition import RawPartition, TopicPartition
from klog.connector.log.root import back_off
from klog.connector.log.segment import SegmentReader, chunks
from klog.connector.log.tail import End, Flushed, find_end, find_log_end
from klog.connector.store.files import Entry, Store
from klog.connector.store.local import LocalStore
from klog.connector.store.schemes import store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import (
    CorruptRecordError,
    DataLossError,
    KlogError,
    OptionError,
    UnsupportedFormatError,
)
from klog.logformat.checkpoint import read_offset_checkpoint
from klog.logformat.metadata import read_topic_id
from klog.logformat.names import partition_of_directory

KLOG_STATE = "_klog"
MAX_STALE_LISTINGS = 12
"""Together some seconds: on a busy machine a reader may be suspended while a broker cleans."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One of a broker's log directories, with what its checkpoint files said when it was read.

    `root` is the path or URL as it was given, `path` the same as its store spells it.
    """

    root: str
    path: str
    store: Store
    log_starts: dict[tuple[str, int], int]
    high_watermarks: dict[tuple[str, int], int]
    recovery_points: dict[tuple[str, int], int]
    clean: bool
    held: bool

    def flushed(self, name: tuple[str, int]) -> Flushed:
        """Say what the broker promised of one partition."""
        promised = self.high_watermarks if self.held else self.recovery_points
        return Flushed(promised.get(name, 0), self.clean, self.held)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a long-lived root knows of a partition, and what it must still be to be believed.

    `identity` and `stamp` are those of the active segment's file when its `end` was found, `held`
    whether a broker held it then; `opened` are the transactions that were open there.
    """

    topic_id: str
    identity: str
    stamp: str
    held: bool
    end: End
    opened: stable.OpenTransactions | None = None


Partitions: TypeAlias = dict[TopicPartition, tuple[LogDirectory, Entry]]


class RawRoot:
    """The partitions in one or several log directories.

    A long-lived one (a stream's) remembers where logs ended and which transactions were open, so
    that looking again costs the bytes that came since.
    """

    def __init__(
        self,
        paths: Iterable[str],
        storage: Storage = NOTHING_GIVEN,
        *,
        beside_commits: bool = False,
    ) -> None:
        """Find the store of each path; raises `OptionError` where there is none.

        `beside_commits` is for who adopts: what a broker left is looked at in a klog root too.
        """
        self._roots = [(path, *store_for(path, storage)) for path in paths]
        self._beside_commits = beside_commits
        self._remembered: dict[TopicPartition, Remembered] = {}

    def partitions(self) -> Partitions:
        """List every partition with its log directory and its own directory.

        Raises `KlogError` if two log directories hold the same partition.
        """
        found: Partitions = {}
        for given, store, path in self._roots:
            entries = _list_root(given, store, path)
            if not self._beside_commits:
                _refuse_commits(given, store, path, entries)
            log_directory = _read_log_directory(given, store, path, entries)
            for entry in entries:
                name = partition_of_directory(entry.name) if entry.is_directory else None
                if name is None:
                    continue
                key = TopicPartition(*name)
                if key in found:
                    raise KlogError(
                        f"{key}: both {found[key][1].path} and {entry.path} hold this partition; "
                        "give the log directories of one broker"
                    )
                found[key] = (log_directory, entry)
        return dict(sorted(found.items()))

    def look(self) -> RawLook:
        """List what is there now."""
        return RawLook(self, self.partitions())

    def open(
        self, names: Iterable[TopicPartition], there: Partitions | None = None
    ) -> dict[TopicPartition, RawPartition]:
        """Read the bounds of these partitions, which `there`, or a new listing, has.

        Raises `CorruptFileError` for a log whose end cannot be told, `FileNotFoundError` for a
        partition that has gone.
        """
        found = self.partitions() if there is None else there
        logs = {}
        for name in names:
            if name not in found:
                raise FileNotFoundError(f"partition {name} has gone")
            logs[name] = self._open_one(name, *found[name])
        return logs

    def offset_for_time(self, log: RawPartition, timestamp_ms: int, bound: int) -> int | None:
        """Give the first offset of at least this time, None if none below `bound` has it."""
        return log.retry_stale(lambda now: times.offset_for_time(now, timestamp_ms, bound))

    def last_stable_offset(self, log: RawPartition) -> int:
        """Give the last stable offset of a partition: its log end if no transaction is open."""
        return max(self.open_transactions(log).last_stable_offset, log.log_start)

    def open_transactions(self, log: RawPartition) -> stable.OpenTransactions:
        """Give the transactions of a partition that are open at its log end."""
        return log.retry_stale(self._open_transactions)

    def relist(self, log: RawPartition) -> RawPartition:
        """Return a partition with its files listed again and the same log end.

        Raises `FileNotFoundError` if it belongs to another topic by now, or ends before that.
        """
        now = self.open([log.name])[log.name]
        if now.topic_id != log.topic_id or now.end.next_offset < log.log_end:
            raise FileNotFoundError(f"partition {log.name} was deleted and created again, or cut")
        return replace(now, log_end=log.log_end)

    def _open_transactions(self, log: RawPartition) -> stable.OpenTransactions:
        remembered = self._remembered.get(log.name)
        known = remembered.opened if remembered is not None else None
        if known is None or not log.log_start <= known.offset <= log.log_end:
            known = stable.newest_snapshot(log.store, log.directory, log.log_end)
        now = stable.follow(known or stable.OpenTransactions(log.log_start), log)
        if remembered is not None:
            self._remembered[log.name] = replace(remembered, opened=now)
        return now

    def _open_one(
        self, name: TopicPartition, log_directory: LogDirectory, entry: Entry
    ) -> RawPartition:
        for _ in range(LISTING_TRIES - 1):
            with suppress(FileNotFoundError):
                return self._read_partition(name, log_directory, entry)
        return self._read_partition(name, log_directory, entry)

    def _read_partition(
        self, name: TopicPartition, log_directory: LogDirectory, entry: Entry
    ) -> RawPartition:
        store, key = log_directory.store, (name.topic, name.partition)
        held = log_directory.held
        listing = list_consistently(store, entry.path) if held else store.entries(entry.path)
        directory = read_directory(entry.path, listing, lambda swap: _next_offset(store, swap))
        topic_id = read_topic_id_of(store, entry.path)
        start = log_directory.log_starts.get(key, 0)
        end = End(start, 0)
        if directory.segments:
            flushed = log_directory.flushed(key)
            count, end = find_log_end(
                directory.segments,
                flushed,
                lambda segment: self._find_end(name, topic_id, store, segment, flushed),
            )
            directory = replace(directory, segments=directory.segments[:count])
            start = max(start, directory.segments[0].base_offset)
        # A broker that finds its log end below the checkpointed start drops the log
        # (docs/format.md, 14).
        log_end = max(end.next_offset, start)
        if held:
            log_end = max(min(log_end, log_directory.high_watermarks.get(key, 0)), start)
        return RawPartition(
            name,
            topic_id,
            log_directory.root,
            store,
            directory,
            start,
            log_end,
            end,
            held,
            self,
        )

    def _find_end(
        self,
        name: TopicPartition,
        topic_id: str,
        store: Store,
        segment: Segment,
        flushed: Flushed,
    ) -> End:
        """Find the end of the last segment, or of one behind which no batch is whole."""
        if not segment.log.size_bytes:
            return End(segment.base_offset, 0)
        known = self._remembered.get(name)
        if known is not None and known.topic_id != topic_id:
            known = None
        reader = SegmentReader(store, segment)
        file = reader.file
        try:
            same = known is not None and known.identity == file.identity
            if known and same and (known.stamp, known.held) == (file.stamp, flushed.held):
                return known.end
            end = find_end(reader, flushed, known.end if known and same else None)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(name)) from exc
        finally:
            reader.close()
        grown = known is not None and end.next_offset >= known.end.next_offset
        opened = known.opened if known and grown else None
        self._remembered[name] = Remembered(
            topic_id, file.identity, file.stamp, flushed.held, end, opened
        )
        return end


@dataclass(frozen=True, slots=True)
class RawLook:
    """What a raw root held at one look: its partitions, as listed."""

    root: RawRoot
    listed: Partitions

    def __contains__(self, name: object) -> bool:
        """Tell whether a `TopicPartition` was there."""
        return name in self.listed

    @property
    def no_topics(self) -> str:
        """Say what a root is: a folder above or below it was given, maybe."""
        return (
            "there is no topic here; give the root itself, or the broker's log directory, which "
            "has directories named <topic>-<partition>"
        )

    def missing(self, topic: str) -> str:
        """Say that a topic is not there."""
        return f"there is no topic {topic}"

    @property
    def topics(self) -> Mapping[str, Sequence[int]]:
        """Give the numbers of each topic's partitions."""
        found: dict[str, list[int]] = {}
        for name in self.listed:
            found.setdefault(name.topic, []).append(name.partition)
        return found

    def open(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, RawPartition]:
        """Read the bounds of these partitions. Raises as `RawRoot.open`."""
        return self.root.open(names, self.listed)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Read the id of each topic that has one, from its first partition."""
        wanted, ids = set(topics), dict[str, str]()
        for name, (log_directory, entry) in self.listed.items():
            if name.topic in wanted and name.topic not in ids:
                ids[name.topic] = read_topic_id_of(log_directory.store, entry.path)
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id}


def read_topic_id_of(store: Store, partition: str) -> str:
    """Read the topic's id from a partition's directory; empty where it names none."""
    data = read_beside(store, f"{partition}/partition.metadata")
    return "" if data is None else read_topic_id(data) or ""


def retrying(read: Callable[[], T], wait: Callable[[int], None] = back_off) -> T:
    """Return `read()`; call it again if a file that it listed is gone when it is opened.

    `wait` takes the number of tries so far. Raises `DataLossError` after the last one.
    """
    for tries in range(1, MAX_STALE_LISTINGS + 1):
        try:
            return read()
        except FileNotFoundError as exc:
            if tries == MAX_STALE_LISTINGS:
                raise DataLossError(
                    f"files vanish as fast as they are listed ({exc}); try again when the broker "
                    "has finished deleting"
                ) from exc
            _log.info("%s; listing again", exc)
            wait(tries)
    raise AssertionError("a loop of no tries")


def _next_offset(store: Store, swap: Entry) -> int:
    """Read the end of a `.swap` log by its headers."""
    file = store.open(swap.path)
    next_offset = 0
    try:
        for chunk in chunks(file, 0, file.size_bytes):
            next_offset = int(chunk.batches.next_offsets[-1])
    finally:
        file.close()
    return next_offset


def _refuse_commits(given: str, store: Store, path: str, entries: list[Entry]) -> None:
    """Refuse a directory whose commit logs have lost what makes it a klog root."""
    has_state = any(entry.name == KLOG_STATE and entry.is_directory for entry in entries)
    if has_state and not is_under_way(store, path):
        raise UnsupportedFormatError(
            f"{given} has {KLOG_STATE}, but no {KLOG_STATE}/format.json: it is neither a "
            "klog root nor a broker's directory. Restore that file"
        )


def _list_root(given: str, store: Store, path: str) -> list[Entry]:
    try:
        return store.entries(path)
    except FileNotFoundError:
        raise OptionError(f"path: there is no directory {given}") from None
    except NotADirectoryError:
        raise OptionError(f"path: {given} is a file; give the log directory itself") from None


def _read_log_directory(given: str, store: Store, path: str, entries: list[Entry]) -> LogDirectory:
    files = {
        entry.name: entry.path for entry in entries if not entry.is_directory and not entry.special
    }

    def checkpoint(name: str) -> dict[tuple[str, int], int]:
        data = read_beside(store, files[name]) if name in files else None
        return {} if data is None else read_offset_checkpoint(data) or {}

    return LogDirectory(
        root=given,
        path=path,
        store=store,
        log_starts=checkpoint("log-start-offset-checkpoint"),
        high_watermarks=checkpoint("replication-offset-checkpoint"),
        recovery_points=checkpoint("recovery-point-offset-checkpoint"),
        clean=".kafka_cleanshutdown" in files,
        held=isinstance(store, LocalStore) and is_held(path),
    )
