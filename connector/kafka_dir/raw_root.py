"""A broker's log directories, read as the broker left them or as it has them: a raw root.

The rule: partitions are found by directory name, segments by listing; nothing is written. A log
starts at the larger of its first segment and `log-start-offset-checkpoint`. It ends where `log_end`
finds it, or at the high watermark that a running broker last checkpointed. Several directories are
one broker's `log.dirs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from klog.connector.kafka_dir import offset_for_time
from klog.connector.kafka_dir.kafka_log_dir import KafkaLogDir, read_log_dir
from klog.connector.kafka_dir.last_stable_offset import (
    OpenTransactions,
    follow_transactions,
    read_newest_snapshot,
)
from klog.connector.kafka_dir.log_bounds import LogEnd, RecoveryPoint
from klog.connector.kafka_dir.log_end import find_log_end, find_segment_end
from klog.connector.kafka_dir.partition_directory import (
    MAX_LISTING_TRIES,
    Segment,
    list_consistently,
    read_directory,
    read_partition_topic_id,
)
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.segment_chunks import read_chunks
from klog.connector.store.readable_store import DirectoryEntry, ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import CorruptRecordError, KlogError
from klog.logformat.topic_partition import TopicPartition

ListedPartitions: TypeAlias = dict[TopicPartition, tuple[KafkaLogDir, DirectoryEntry]]
"""Each partition with its log directory and its own directory."""


class RawRoot:
    """The partitions in one or several log directories.

    A long-lived root, such as a stream's, remembers where logs ended and which transactions were
    open, so that a later snapshot costs the bytes that came since.
    """

    def __init__(
        self,
        paths: Iterable[str],
        storage: StorageOptions = NO_STORAGE_OPTIONS,
        *,
        allow_klog_state: bool = False,
    ) -> None:
        """Find the store of each path.

        Args:
            paths: The log directories, paths or URLs.
            storage: Options of the stores.
            allow_klog_state: Whether a directory may be a klog root, as for `klog adopt`.

        Raises:
            OptionError: If there is no store for a path.
        """
        self._roots = [(path, *store_for(path, storage)) for path in paths]
        self._allow_klog_state = allow_klog_state
        self._memories: dict[TopicPartition, _PartitionMemory] = {}

    def partitions(self) -> ListedPartitions:
        """List every partition.

        Raises:
            KlogError: If two log directories have the same partition.
        """
        listing: ListedPartitions = {}
        for root, store, path in self._roots:
            log_dir = read_log_dir(root, store, path, allow_klog_state=self._allow_klog_state)
            for name, entry in log_dir.partition_dirs.items():
                if name in listing:
                    raise KlogError(
                        f"{name}: both {listing[name][1].path} and {entry.path} have this "
                        "partition; give the log directories of one broker"
                    )
                listing[name] = (log_dir, entry)
        return dict(sorted(listing.items()))

    @property
    def is_klog_root(self) -> bool:
        """Return False: its files say what is there."""
        return False

    def snapshot(self) -> RawSnapshot:
        """List what is there now."""
        return RawSnapshot(self, self.partitions())

    def open(
        self, names: Iterable[TopicPartition], listing: ListedPartitions | None = None
    ) -> dict[TopicPartition, RawPartition]:
        """Read the bounds of partitions.

        Args:
            names: The partitions.
            listing: A listing that has them; None to list now.

        Raises:
            CorruptFileError: If the end of a log is damaged.
            FileNotFoundError: If a partition has gone.
        """
        listing = self.partitions() if listing is None else listing
        logs = {}
        for name in names:
            if name not in listing:
                raise FileNotFoundError(f"partition {name} has gone")
            logs[name] = self._open_partition(name, *listing[name])
        return logs

    def offset_for_time(self, log: RawPartition, timestamp_ms: int, end_offset: int) -> int | None:
        """See `RawPartitionReader.offset_for_time`."""
        return log.retry_if_replaced(
            lambda now: offset_for_time.offset_for_time(now, timestamp_ms, end_offset)
        )

    def max_timestamp_ms(self, log: RawPartition) -> int | None:
        """See `RawPartitionReader.max_timestamp_ms`."""
        return log.retry_if_replaced(offset_for_time.max_timestamp_ms)

    def last_stable_offset(self, log: RawPartition) -> int:
        """See `RawPartitionReader.last_stable_offset`."""
        return max(self.open_transactions(log).last_stable_offset, log.log_start)

    def open_transactions(self, log: RawPartition) -> OpenTransactions:
        """Return the transactions of a partition that are open at its log end.

        Args:
            log: The partition.
        """
        return log.retry_if_replaced(self._open_transactions)

    def relist(self, log: RawPartition) -> RawPartition:
        """See `RawPartitionReader.relist`."""
        now = self.open([log.name])[log.name]
        if now.topic_id != log.topic_id or now.readable_end < log.log_end:
            raise FileNotFoundError(f"partition {log.name} was deleted and created again, or cut")
        return replace(now, log_end=log.log_end)

    def _open_transactions(self, log: RawPartition) -> OpenTransactions:
        memory = self._memories.get(log.name)
        earlier = memory.transactions if memory is not None else None
        now = None
        if earlier and earlier.last_batch and log.log_start <= earlier.offset <= log.log_end:
            now = follow_transactions(earlier, log)
        if now is None:
            snapshot = read_newest_snapshot(log.store, log.directory, log.log_end)
            now = follow_transactions(snapshot or OpenTransactions(log.log_start), log)
        assert now is not None, "nothing was followed before"
        if memory is not None:
            self._memories[log.name] = replace(memory, transactions=now)
        return now

    def _open_partition(
        self, name: TopicPartition, log_dir: KafkaLogDir, entry: DirectoryEntry
    ) -> RawPartition:
        for _ in range(MAX_LISTING_TRIES - 1):
            with suppress(FileNotFoundError):
                return self._read_partition(name, log_dir, entry)
        return self._read_partition(name, log_dir, entry)

    def _read_partition(
        self, name: TopicPartition, log_dir: KafkaLogDir, entry: DirectoryEntry
    ) -> RawPartition:
        store, is_locked = log_dir.store, log_dir.is_locked_by_broker
        entries = list_consistently(store, entry.path) if is_locked else store.entries(entry.path)
        directory = read_directory(entry.path, entries, lambda swap: _next_offset(store, swap))
        topic_id = read_partition_topic_id(store, entry.path)
        log_start = log_dir.log_start_offsets.get(name, 0)
        active_end = LogEnd(log_start, 0)
        if directory.segments:
            recovery_point = log_dir.recovery_point(name)
            recovered = find_log_end(
                directory.segments,
                recovery_point,
                lambda segment: self._find_end(name, topic_id, store, segment, recovery_point),
            )
            directory = replace(directory, segments=directory.segments[: recovered.segment_count])
            active_end = recovered.end
            log_start = max(log_start, directory.segments[0].base_offset)
        # A broker that finds its log end below the checkpointed start drops the log
        # (docs/format.md, 14).
        log_end = max(active_end.next_offset, log_start)
        if is_locked:
            log_end = max(min(log_end, log_dir.high_watermarks.get(name, 0)), log_start)
        return RawPartition(
            name,
            topic_id,
            log_dir.root,
            store,
            directory,
            log_start,
            log_end,
            active_end,
            is_locked,
            self,
        )

    def _find_end(
        self,
        name: TopicPartition,
        topic_id: str,
        store: ReadableStore,
        segment: Segment,
        recovery_point: RecoveryPoint,
    ) -> LogEnd:
        """Find the end of the last segment, or of one with only empty segments after it."""
        if not segment.log.size_bytes:
            return LogEnd(segment.base_offset, 0)
        memory = self._memories.get(name)
        if memory is not None and memory.topic_id != topic_id:
            memory = None
        is_locked = recovery_point.is_locked_by_broker
        reader = SegmentReader(store, segment)
        file = reader.file
        try:
            previous = memory if memory is not None and memory.identity == file.identity else None
            if previous is not None and previous.is_unchanged(file.stamp, is_locked=is_locked):
                return previous.end
            hint = None if previous is None else previous.end
            end = find_segment_end(reader, recovery_point, hint)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(name)) from exc
        finally:
            reader.close()
        transactions = memory.transactions if memory is not None else None
        self._memories[name] = _PartitionMemory(
            topic_id, file.identity, file.stamp, is_locked, end, transactions
        )
        return end


@dataclass(frozen=True, slots=True)
class _PartitionMemory:
    """What a long-lived root knows of a partition.

    Attributes:
        topic_id: The topic's id then.
        identity: The active segment's file.
        stamp: The file's stamp.
        is_locked_by_broker: Whether a broker ran.
        end: Where the active segment ended.
        transactions: The transactions that were open; None if nobody asked.
    """

    topic_id: str
    identity: str
    stamp: str
    is_locked_by_broker: bool
    end: LogEnd
    transactions: OpenTransactions | None = None

    def is_unchanged(self, stamp: str, *, is_locked: bool) -> bool:
        """Return whether the file's bytes, and who may change them, are the same as then."""
        return (self.stamp, self.is_locked_by_broker) == (stamp, is_locked)


@dataclass(frozen=True, slots=True)
class RawSnapshot:
    """What a raw root had in one listing."""

    root: RawRoot
    listed_partitions: ListedPartitions
    _opened: dict[TopicPartition, RawPartition] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __contains__(self, name: object) -> bool:
        """Return whether it has a `TopicPartition`."""
        return name in self.listed_partitions

    @property
    def no_topics_hint(self) -> str:
        """Return what to do if there is no topic: the path may be one above or below the root."""
        return (
            "there is no topic here; give the root itself, or the broker's log directory, which "
            "has directories named <topic>-<partition>"
        )

    def missing_topic_reason(self, topic: str) -> str:
        """See `Snapshot.missing_topic_reason`."""
        return f"there is no topic {topic}"

    @property
    def topics(self) -> Mapping[str, Sequence[int]]:
        """Return the numbers of each topic's partitions."""
        numbers: dict[str, list[int]] = {}
        for name in self.listed_partitions:
            numbers.setdefault(name.topic, []).append(name.partition)
        return numbers

    def open(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, RawPartition]:
        """See `Snapshot.open`. Each partition's bounds are read once."""
        names = list(names)
        missing = [name for name in names if name not in self._opened]
        self._opened.update(self.root.open(missing, self.listed_partitions))
        return {name: self._opened[name] for name in names}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """See `Snapshot.topic_ids`. The id is that of the topic's first partition."""
        topics, ids = set(topics), dict[str, str]()
        for name, (log_dir, entry) in self.listed_partitions.items():
            if name.topic in topics and name.topic not in ids:
                ids[name.topic] = read_partition_topic_id(log_dir.store, entry.path)
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id}


def _next_offset(store: ReadableStore, swap: DirectoryEntry) -> int:
    """Read the end of a `.swap` log by its headers."""
    file = store.open(swap.path)
    next_offset = 0
    try:
        for chunk in read_chunks(file, 0, file.size_bytes):
            next_offset = int(chunk.batches.next_offsets[-1])
    finally:
        file.close()
    return next_offset
