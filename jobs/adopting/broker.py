"""What of a broker's log directories can be taken: whole topics, each partition as it was left.

The rule: a topic is taken whole or not at all. One of which a partition is missing between others
is refused, for its other partitions are on other disks or brokers, and so is one of whose logs no
broker has the end: while the directory is held, or a transaction is open. The controllers' own log
is no topic. (docs/format.md, 14.)
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klog.connector.log.beside import read_beside
from klog.connector.log.directory import Segment
from klog.connector.log.partition import RawPartition, TopicPartition
from klog.connector.log.raw import LogDirectory, RawLook, RawRoot, read_topic_id_of
from klog.connector.store.files import SMALL_BYTES, Store
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.logformat.checkpoint import read_offset_checkpoint
from klog.logformat.names import segment_file, snapshot_file, transitional_file
from klog.logformat.properties import decode_properties

CONTROLLERS_LOG = "__cluster_metadata"
_BESIDE_SEGMENTS = ("partition.metadata", "leader-epoch-checkpoint")
OPEN_TRANSACTIONS = ("abort", "commit")
"""What may be said of transactions that no marker ends."""


@dataclass(frozen=True, slots=True)
class BrokerTopic:
    """A topic of a broker's directories.

    `topic_id` is empty where no file says one. `is_cleaned` tells that the log cleaner has been at
    it: its `cleanup.policy` has compact. `cleaned_to` is by partition.
    """

    name: str
    topic_id: str
    logs: tuple[RawPartition, ...]
    is_cleaned: bool
    cleaned_to: Mapping[int, int]

    @property
    def size_bytes(self) -> int:
        """Give the bytes that count."""
        return sum(log.size_bytes for log in self.logs)


@dataclass(frozen=True, slots=True)
class Counted:
    """What of a segment counts: its first `size_bytes` of `file_bytes`, offsets below `limit`."""

    segment: Segment
    limit: int
    size_bytes: int
    file_bytes: int


def left_by_a_broker(look: RawLook) -> RawLook:
    """Keep the partitions in which a broker left a file; the others are klog's or a failed write's.

    In a klog root that is what tells them apart: a directory that klog made has only segments of
    klog's own names, or nothing where a write failed.
    """
    listed = {
        name: (directory, entry)
        for name, (directory, entry) in look.listed.items()
        if any(_is_a_brokers(one.name) for one in directory.store.entries(entry.path))
    }
    return RawLook(look.root, listed)


def _is_a_brokers(file: str) -> bool:
    return (
        file in _BESIDE_SEGMENTS
        or segment_file(file) is not None
        or snapshot_file(file) is not None
        or transitional_file(file) is not None
    )


def broker_topics(
    root: RawRoot, look: RawLook, named: Sequence[str] | None, open_transactions: str | None
) -> list[BrokerTopic]:
    """Find the topics that are named, or all, in a look; nothing is read but the ends of logs.

    Raises `OptionError` for one that is not there, and `KlogError` for what cannot be taken.
    """
    if open_transactions not in (None, *OPEN_TRANSACTIONS):
        raise OptionError(f"open_transactions is {open_transactions!r}; abort or commit it can be")
    for directory in {id(one): one for one, _ in look.listed.values()}.values():
        check_not_held(directory)
    topics = look.topics
    wanted = [name for name in topics if name != CONTROLLERS_LOG] if named is None else named
    found = []
    for name in dict.fromkeys(wanted):
        if name == CONTROLLERS_LOG:
            raise OptionError(f"{name} is the controllers' own log, which no klog root has")
        if name not in topics:
            close = difflib.get_close_matches(name, list(topics), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OptionError(f"there is no topic {name}{hint}")
        found.append(_topic(look, name))
    if open_transactions is None:
        _refuse_open(root, found)
    return found


def check_not_held(directory: LogDirectory) -> None:
    """Refuse a directory that a broker has."""
    if directory.held:
        raise KlogError(
            f"{directory.root}: a broker runs on it; stop it cleanly first, so that what it has "
            "written ends where it says"
        )


def cluster_id_of(store: Store, path: str) -> str:
    """Read the cluster's id from `meta.properties`; empty where it says none."""
    try:
        said = decode_properties(store.read(f"{path}/meta.properties", SMALL_BYTES))
    except (FileNotFoundError, CorruptRecordError):
        return ""
    return said.get("cluster.id", "")


def counted_segments(log: RawPartition) -> list[Counted]:
    """Give the segments of which something counts, in order.

    Each reaches to the next one, and the last to the log's end: what lies between is empty.
    """
    found: list[tuple[Segment, int]] = []
    for segment, behind in log.bounded_segments():
        is_active = log.is_active(segment)
        size_bytes = log.end.position if is_active else segment.log.size_bytes
        if size_bytes and behind > log.log_start:
            found.append((segment, size_bytes))
    limits = [segment.base_offset for segment, _ in found[1:]]
    return [
        Counted(segment, limit, size_bytes, segment.log.size_bytes)
        for (segment, size_bytes), limit in zip(found, [*limits, log.log_end], strict=False)
    ]


def refuse_open(name: TopicPartition, first_offsets: Mapping[int, int]) -> None:
    """Refuse a log with transactions, producer id to first offset, that no marker ends."""
    for producer_id, offset in sorted(first_offsets.items(), key=lambda one: one[1]):
        raise KlogError(
            f"{name}: the transaction of producer {producer_id} that began at offset {offset} has "
            "no end in this log, and no coordinator will write one any more. Start the broker, "
            "have it ended (kafka-transactions.sh abort) and stop it, or say what became of it: "
            "--open-transactions abort, or commit"
        )


def _topic(look: RawLook, name: str) -> BrokerTopic:
    numbers = sorted(look.topics[name])
    missing = sorted(set(range(numbers[-1] + 1)) - set(numbers))
    if missing:
        some = ", ".join(f"{name}-{number}" for number in missing[:5])
        raise KlogError(
            f"topic {name} is not whole: there is {name}-{numbers[-1]} and no {some}. Its other "
            "partitions are in other directories: give them all to `klog import-log`, or name the "
            "topics that are whole here"
        )
    names = [TopicPartition(name, number) for number in numbers]
    ids = {_topic_id(look, one) for one in names}
    if len(ids) > 1:
        raise KlogError(
            f"topic {name}: its partitions say different topic ids: {', '.join(sorted(ids))}. Some "
            "are of an earlier topic of that name; take their directories away"
        )
    logs = tuple(look.open(names).values())
    cleaned = {one.partition: _cleaned_to(look, one) for one in names}
    known = {number: offset for number, offset in cleaned.items() if offset is not None}
    # As a broker does with one that its log does not reach.
    believed = {
        log.name.partition: known[log.name.partition]
        for log in logs
        if log.log_start <= known.get(log.name.partition, -1) <= log.log_end
    }
    return BrokerTopic(name, ids.pop(), logs, bool(known), believed)


def _topic_id(look: RawLook, name: TopicPartition) -> str:
    directory, entry = look.listed[name]
    return read_topic_id_of(directory.store, entry.path)


def _cleaned_to(look: RawLook, name: TopicPartition) -> int | None:
    directory, _ = look.listed[name]
    data = read_beside(directory.store, f"{directory.path}/cleaner-offset-checkpoint")
    checkpoint = None if data is None else read_offset_checkpoint(data)
    return (checkpoint or {}).get((name.topic, name.partition))


def _refuse_open(root: RawRoot, topics: Sequence[BrokerTopic]) -> None:
    """Tell of open transactions before anything is read through."""
    for topic in topics:
        for log in topic.logs:
            try:
                refuse_open(log.name, root.open_transactions(log).first_offsets)
            except CorruptRecordError as exc:
                raise exc.in_file(log.directory.path, str(log.name)) from exc
