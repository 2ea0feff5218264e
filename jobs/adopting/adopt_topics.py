"""Adopt the topics of a broker's log directory: one commit for each topic.

The rule: a topic that was adopted before needs no commit if it still has the broker's files, so a
killed adoption is run again. A topic that has other files is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.connector.commit_log import adoption_commit
from klog.connector.commit_log.adoption_commit import BrokerPartition
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.kafka_dir.raw_root import RawRoot, RawSnapshot
from klog.connector.options.storage_options import StorageOptions
from klog.errors import KlogError, OptionError
from klog.jobs.shared.broker_logs.adopt_report import AdoptedPartition
from klog.jobs.shared.broker_logs.broker_topics import (
    BrokerTopic,
    find_broker_topics,
    with_broker_files,
)
from klog.jobs.shared.broker_logs.partition_scans import (
    partition_from_scans,
    scan_tasks,
    topic_waves,
)
from klog.jobs.shared.broker_logs.readable_segments import readable_segments
from klog.jobs.shared.broker_logs.scan_tasks import scan_segment
from klog.jobs.shared.job_tasks import run_tasks
from klog.logformat.broker_files.file_names import segment_file_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_BROKER_FILES = "it has no file of a broker"


@dataclass(frozen=True, slots=True)
class RootAdoption:
    """The adoption of one directory.

    `is_klog_root` is whether it was adopted before; `is_named` whether the caller named topics.
    """

    root: KlogRoot
    config: Mapping[str, str]
    open_transactions: str | None
    storage: StorageOptions
    is_klog_root: bool
    is_named: bool

    def preview(self, topics: Sequence[BrokerTopic]) -> Iterator[AdoptedPartition]:
        """Yield what `adopt` would do to each partition; nothing is written.

        Args:
            topics: The topics.
        """
        for topic in topics:
            left = self._reason_to_leave(topic)
            yield from (AdoptedPartition.of_log(log, left) for log in topic.logs)

    def adopt(
        self, spark: SparkSession | None, topics: Sequence[BrokerTopic]
    ) -> Iterator[AdoptedPartition]:
        """Adopt topics, and yield the report of each partition.

        Args:
            spark: The session that runs the tasks; None for this process.
            topics: The topics.
        """
        for wave in topic_waves(topics):
            left = {topic.name: self._reason_to_leave(topic) for topic in wave}
            logs = [log for topic in wave if not left[topic.name] for log in topic.logs]
            tasks = [task for log in logs for task in scan_tasks(log, self.storage)]
            scans = run_tasks(spark, scan_segment, tasks, "adopt")
            for topic in wave:
                if reason := left[topic.name]:
                    yield from (AdoptedPartition.of_log(log, reason) for log in topic.logs)
                    continue
                partitions = [
                    partition_from_scans(topic, log, scans, self.open_transactions)
                    for log in topic.logs
                ]
                self._commit(topic, partitions)
                for log, partition in zip(topic.logs, partitions, strict=True):
                    yield AdoptedPartition.of_log(log).with_commit(partition)

    def _reason_to_leave(self, topic: BrokerTopic) -> str:
        """Return why a topic needs no commit, empty if it does; refuse one with other files."""
        state = self.root.log_to_write(topic.name).load()
        if state.version < 0:
            return ""
        if not state.topic_id:
            if self.is_named:
                raise OptionError(
                    f"topic {topic.name} was adopted and then deleted: the next vacuum deletes its "
                    "files. Leave it out of --topic"
                )
            return "it was deleted"
        if self.is_klog_root and not topic.topic_id and not any(map(readable_segments, topic.logs)):
            return _NO_BROKER_FILES
        if topic.topic_id not in ("", state.topic_id) or not self._has_files(state, topic):
            step = (
                "its name is taken: adopt it in a directory of its own"
                if self.is_klog_root
                else "something changed the directory since: move _klog/ away, and adopt it again"
            )
            raise KlogError(
                f"topic {topic.name} is in {self.root.location} with id {state.topic_id}, and the "
                f"broker's files are not those that were adopted; {step}"
            )
        return "it was adopted before"

    def _has_files(self, state: TopicState, topic: BrokerTopic) -> bool:
        """Return whether a topic was adopted from these files."""
        broker_sizes = {
            f"{log.name}/{readable.segment.log.name}": readable.size_bytes
            for log in topic.logs
            for readable in readable_segments(log)
        }
        live = state.segments.select(["file", "size_bytes"]).to_pylist()
        live_sizes = {entry["file"]: entry["size_bytes"] for entry in live}
        if not self.is_klog_root:
            return broker_sizes == live_sizes
        # A topic in use may have lost some of these files since.
        all_files = live_sizes.keys() | set(state.removed["file"].to_pylist())
        is_same_topic = bool(topic.topic_id) or not all_files.isdisjoint(broker_sizes)
        return is_same_topic and all(
            live_sizes.get(file, size_bytes) == size_bytes
            for file, size_bytes in broker_sizes.items()
        )

    def _commit(self, topic: BrokerTopic, partitions: Sequence[BrokerPartition]) -> None:
        log = self.root.new_log(topic.name)
        new_topic = Topic(topic.topic_id or random_uuid(), len(partitions))
        config = topic.inferred_config(self.config)
        build = adoption_commit.adopt(new_topic, config, partitions)
        log.commit(log.load(), build, CommitInfo(random_uuid(), "adopt", this_engine()))


@dataclass(frozen=True, slots=True)
class AdoptionCandidates:
    """The topics in which a broker left files, and the report of a klog root's other topics."""

    topics: Sequence[BrokerTopic]
    left: Sequence[AdoptedPartition] = ()


def find_candidates(
    log_dir: RawRoot,
    klog_root: KlogRoot | None,
    names: Sequence[str] | None,
    open_transactions: str | None,
) -> AdoptionCandidates:
    """Find the named topics of a directory, or all.

    Args:
        log_dir: The directory.
        klog_root: The klog root that it is already; None if it is only a broker's.
        names: The topics, or None for all.
        open_transactions: How open transactions ended, `abort` or `commit`; None refuses them.

    Raises:
        OptionError: A named topic does not exist.
        KlogError: A topic cannot be adopted.
    """
    snapshot = log_dir.snapshot()
    if klog_root is None:
        return AdoptionCandidates(find_broker_topics(log_dir, snapshot, names, open_transactions))
    broker_snapshot = with_broker_files(snapshot)
    left = _topics_without_broker_files(klog_root, snapshot, broker_snapshot, names)
    if names is not None:
        names = [name for name in names if name in broker_snapshot.topics]
    topics = find_broker_topics(log_dir, broker_snapshot, names, open_transactions)
    return AdoptionCandidates(topics, left)


def _topics_without_broker_files(
    root: KlogRoot,
    snapshot: RawSnapshot,
    broker_snapshot: RawSnapshot,
    names: Sequence[str] | None,
) -> list[AdoptedPartition]:
    """Return the report of a klog root's topics in which no broker left a file."""
    partitions: list[AdoptedPartition] = []
    other_names = snapshot.topics.keys() - broker_snapshot.topics.keys()
    for name in sorted(other_names) if names is None else names:
        if name in broker_snapshot.topics:
            continue
        if root.log_to_read(name).load().version < 0:
            if names is None:
                continue  # A failed write left the directory.
            raise OptionError(
                f"{root.location} has no topic {name} of a broker, and is a klog root already: "
                "`klog topics list` names its topics. A directory of that name without a broker's "
                "files is from a failed write"
            )
        listed = [partition for partition in snapshot.listed_partitions if partition.topic == name]
        partitions += [
            AdoptedPartition.of_log(log, _NO_BROKER_FILES) for log in snapshot.open(listed).values()
        ]
    return partitions


def refuse_unfinished_cleanings(topics: Sequence[BrokerTopic]) -> None:
    """Refuse segments that a broker would rename when it starts: an adopted file keeps its name.

    Args:
        topics: The topics to adopt.

    Raises:
        KlogError: There is such a segment.
    """
    for topic in topics:
        for log in topic.logs:
            for readable in readable_segments(log):
                file = readable.segment.log
                if file.name != segment_file_name(readable.segment.base_offset, "log"):
                    raise KlogError(
                        f"{file.path}: the broker did not finish a cleaning of this log. Start the "
                        "broker and stop it cleanly, which finishes it, or copy the topic with "
                        "`klog import-log`"
                    )
