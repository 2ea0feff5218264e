"""Find the topics of a broker's log directories that can be taken.

The rule: a topic is taken with all its partitions or not at all. A topic is refused if a partition
between others is missing, because that one is on another disk or broker. It is also refused if the
end of a log is not known: a broker runs on the directory, or a transaction is open. The
controllers' own log is not a topic. (docs/format.md, 14.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.kafka_log_dir import KafkaLogDir
from klog.connector.kafka_dir.partition_directory import read_partition_topic_id
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.raw_root import RawRoot, RawSnapshot
from klog.errors import CorruptRecordError, KlogError, OptionError, nearest_name
from klog.jobs.shared.broker_logs.adopt_options import check_open_transactions
from klog.logformat.broker_files.checkpoint_files import parse_offset_checkpoint
from klog.logformat.broker_files.file_names import (
    parse_segment_file,
    parse_snapshot_file,
    parse_transitional_file,
)
from klog.logformat.topic_partition import TopicPartition

CONTROLLERS_LOG = "__cluster_metadata"
_PARTITION_FILES = ("partition.metadata", "leader-epoch-checkpoint")


@dataclass(frozen=True, slots=True)
class BrokerTopic:
    """A topic of a broker's directories.

    `topic_id` is empty if no file has one. `is_cleaned` is whether the log cleaner has cleaned it,
    so that its `cleanup.policy` has `compact`. `cleaned_to` is by partition.
    """

    name: str
    topic_id: str
    logs: tuple[RawPartition, ...]
    is_cleaned: bool
    cleaned_to: Mapping[int, int]

    @property
    def size_bytes(self) -> int:
        """Return the bytes that can be read."""
        return sum(log.size_bytes for log in self.logs)

    def inferred_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return configs for the topic: a cleaned one has `cleanup.policy=compact`.

        The default policy would have retention delete what the log cleaner kept.

        Args:
            config: Configs that the caller gives each topic.
        """
        inferred = {"cleanup.policy": "compact"} if self.is_cleaned else {}
        return {**inferred, **config}


def with_broker_files(snapshot: RawSnapshot) -> RawSnapshot:
    """Return the partitions in which a broker left a file.

    In a klog root the others are klog's, or a failed write left them: a directory that klog made
    has only segments with klog's own names, or nothing.

    Args:
        snapshot: All partitions of the directories.
    """
    listed = {
        name: (directory, entry)
        for name, (directory, entry) in snapshot.listed_partitions.items()
        if any(_is_broker_file(file.name) for file in directory.store.entries(entry.path))
    }
    return RawSnapshot(snapshot.root, listed)


def find_broker_topics(
    root: RawRoot,
    snapshot: RawSnapshot,
    names: Sequence[str] | None,
    open_transactions: str | None,
) -> list[BrokerTopic]:
    """Find the named topics, or all; only the ends of logs are read.

    Args:
        root: The log directories.
        snapshot: Their partitions.
        names: The topics, or None for all.
        open_transactions: How open transactions ended, `abort` or `commit`; None refuses them.

    Raises:
        OptionError: A named topic does not exist.
        KlogError: A topic cannot be taken.
    """
    check_open_transactions(open_transactions)
    check_no_broker_runs(snapshot)
    known_names = snapshot.topics
    if names is None:
        names = [name for name in known_names if name != CONTROLLERS_LOG]
    topics = []
    for name in dict.fromkeys(names):
        if name == CONTROLLERS_LOG:
            raise OptionError(
                f"{name} is the controllers' own log, which no klog root has. Leave it out of "
                "--topic"
            )
        if name not in known_names:
            nearest = nearest_name(name, known_names)
            hint = f"did you mean {nearest}?" if nearest else "--topic must name one of a broker"
            raise OptionError(f"there is no topic {name}; {hint}")
        topics.append(_topic(snapshot, name))
    if open_transactions is None:
        _refuse_topics_with_open_transactions(root, topics)
    return topics


def check_no_broker_runs(snapshot: RawSnapshot) -> None:
    """Check that no broker runs on any of the directories.

    Args:
        snapshot: The partitions of the directories.

    Raises:
        KlogError: A broker has a directory's lock.
    """
    directories: dict[int, KafkaLogDir] = {
        id(directory): directory for directory, _ in snapshot.listed_partitions.values()
    }
    for directory in directories.values():
        if directory.is_locked_by_broker:
            raise KlogError(
                f"{directory.root}: a broker runs on it; stop it cleanly first, so that its "
                "checkpoints match its logs"
            )


def refuse_open_transactions(name: TopicPartition, first_offsets: Mapping[int, int]) -> None:
    """Refuse a log with open transactions.

    Args:
        name: The partition.
        first_offsets: The first offset of each open transaction, by producer id.

    Raises:
        KlogError: There is one.
    """
    for producer_id, offset in sorted(first_offsets.items(), key=lambda item: item[1]):
        raise KlogError(
            f"{name}: the transaction of producer {producer_id} that began at offset {offset} has "
            "no end in this log, and no coordinator will write one. Start the broker, end the "
            "transaction (kafka-transactions.sh abort) and stop the broker, or say how the "
            "transaction ended: --open-transactions abort, or commit"
        )


def _is_broker_file(name: str) -> bool:
    return (
        name in _PARTITION_FILES
        or parse_segment_file(name) is not None
        or parse_snapshot_file(name) is not None
        or parse_transitional_file(name) is not None
    )


def _topic(snapshot: RawSnapshot, name: str) -> BrokerTopic:
    numbers = sorted(snapshot.topics[name])
    missing = sorted(set(range(numbers[-1] + 1)) - set(numbers))
    if missing:
        names = ", ".join(f"{name}-{number}" for number in missing[:5])
        raise KlogError(
            f"topic {name} is not complete: there is {name}-{numbers[-1]} and no {names}. Its "
            "other partitions are in other directories: give them all to `klog import-log`, or "
            "name the topics that are complete here"
        )
    partitions = [TopicPartition(name, number) for number in numbers]
    topic_ids = {_topic_id(snapshot, partition) for partition in partitions}
    if len(topic_ids) > 1:
        raise KlogError(
            f"topic {name}: its partitions have different topic ids: "
            f"{', '.join(sorted(topic_ids))}. Directories of an earlier topic of that name are "
            "among them; take these away"
        )
    logs = tuple(snapshot.open(partitions).values())
    offsets = {partition.partition: _cleaned_to(snapshot, partition) for partition in partitions}
    cleaner_offsets = {number: offset for number, offset in offsets.items() if offset is not None}
    # A broker ignores an offset that is outside the log.
    cleaned_to = {
        log.name.partition: cleaner_offsets[log.name.partition]
        for log in logs
        if log.log_start <= cleaner_offsets.get(log.name.partition, -1) <= log.log_end
    }
    return BrokerTopic(name, topic_ids.pop(), logs, bool(cleaner_offsets), cleaned_to)


def _topic_id(snapshot: RawSnapshot, name: TopicPartition) -> str:
    directory, entry = snapshot.listed_partitions[name]
    return read_partition_topic_id(directory.store, entry.path)


def _cleaned_to(snapshot: RawSnapshot, name: TopicPartition) -> int | None:
    directory, _ = snapshot.listed_partitions[name]
    data = read_companion_file(directory.store, f"{directory.path}/cleaner-offset-checkpoint")
    checkpoint = None if data is None else parse_offset_checkpoint(data)
    return (checkpoint or {}).get(name)


def _refuse_topics_with_open_transactions(root: RawRoot, topics: Sequence[BrokerTopic]) -> None:
    """Refuse open transactions before whole logs are read."""
    for topic in topics:
        for log in topic.logs:
            try:
                refuse_open_transactions(log.name, root.open_transactions(log).first_offsets)
            except CorruptRecordError as exc:
                raise exc.in_file(log.directory.path, str(log.name)) from exc
