"""Import the topics of a broker's log directories: one commit for each partition.

The rule: a partition that was imported before is not copied again. A partition is refused if the
root has another topic of that name, or one that was written to or does not reach as far. If a
partition fails, the others are imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.commit_log import adoption_commit, segment_entries
from klog.connector.commit_log.adoption_commit import BrokerPartition
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import refuse_collision
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.options.storage_options import StorageOptions
from klog.errors import CommitConflictError, KlogError, OptionError
from klog.jobs.shared.broker_logs.adopt_report import AdoptedPartition
from klog.jobs.shared.broker_logs.broker_topics import BrokerTopic
from klog.jobs.shared.broker_logs.partition_scans import (
    partition_from_scans,
    scan_tasks,
    topic_waves,
)
from klog.jobs.shared.broker_logs.readable_segments import readable_segments
from klog.jobs.shared.broker_logs.scan_tasks import CopyTask, copy_segment
from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.job_tasks import take_results, try_tasks
from klog.jobs.shared.task_retries import FailedTask
from klog.logformat.topic_config import parse_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIAGNOSIS = (
    "`klog dump --files` shows what is wrong with a file; a new run copies only what is missing"
)
_IMPORTED = "it was imported before"


@dataclass(frozen=True, slots=True)
class _Target:
    """A topic in the klog root: its log, its state before the import, and the topic to create."""

    log: CommitLog
    state: TopicState
    topic: Topic
    config: Mapping[str, str]

    @property
    def base_version(self) -> int:
        """Return the version that the import is planned on."""
        return max(self.state.version, 0)


@dataclass(frozen=True, slots=True)
class LogImport:
    """An import to a root; None if a dry run finds none."""

    root: KlogRoot | None
    config: Mapping[str, str]
    open_transactions: str | None
    storage: StorageOptions

    def preview(self, topics: Sequence[BrokerTopic]) -> Iterator[AdoptedPartition]:
        """Yield what `import_topics` would do to each partition; nothing is written.

        Args:
            topics: The topics.
        """
        for topic in topics:
            state = TopicState()
            if self.root is not None:
                state = self.root.log_to_read(topic.name).load()
            for log in topic.logs:
                yield AdoptedPartition.of_log(log, _reason_to_leave(state, topic, log))

    def import_topics(
        self, spark: SparkSession | None, topics: Sequence[BrokerTopic]
    ) -> Iterator[AdoptedPartition]:
        """Import topics, and yield the report of each partition.

        Args:
            spark: The session that runs the tasks; None for this process.
            topics: The topics.
        """
        for wave in topic_waves(topics):
            targets = {topic.name: self._target(topic) for topic in wave}
            reports = {
                log.name: AdoptedPartition.of_log(
                    log, _reason_to_leave(targets[topic.name].state, topic, log)
                )
                for topic in wave
                for log in topic.logs
            }
            tasks = [
                task
                for topic in wave
                for log in topic.logs
                if not reports[log.name].left
                for task in self._copy_tasks(targets[topic.name], log)
            ]
            results = try_tasks(spark, copy_segment, tasks, "import")
            for topic in wave:
                target, state = targets[topic.name], targets[topic.name].state
                for log in topic.logs:
                    report = reports[log.name]
                    if report.left:
                        yield report
                        continue
                    scans = take_results(results, len(readable_segments(log)))
                    try:
                        if isinstance(scans, FailedTask):
                            raise scans.error
                        partition = partition_from_scans(
                            topic, log, iter(scans), self.open_transactions
                        )
                        state = self._commit(target, state, partition)
                    except OptionError:
                        raise
                    except (KlogError, OSError) as exc:
                        yield replace(report, failure=Failure.of(exc, topic.name, _DIAGNOSIS))
                    else:
                        yield report.with_commit(partition)

    def _target(self, topic: BrokerTopic) -> _Target:
        assert self.root is not None
        state = self.root.log_to_write(topic.name).load()
        if not state.topic_id:
            refuse_collision(self.root, topic.name)
        log = self.root.new_log(topic.name)
        topic_id = state.topic_id or topic.topic_id or random_uuid()
        config = state.config or topic.inferred_config(self.config)
        return _Target(log, state, Topic(topic_id, len(topic.logs)), config)

    def _copy_tasks(self, target: _Target, log: RawPartition) -> Iterator[CopyTask]:
        assert self.root is not None
        interval_bytes = parse_topic_config(target.config).number("index.interval.bytes")
        for task in scan_tasks(log, self.storage):
            yield CopyTask(task, self.root.location, target.base_version, interval_bytes)

    def _commit(self, target: _Target, state: TopicState, partition: BrokerPartition) -> TopicState:
        build = adoption_commit.import_partition(
            target.topic, target.config, target.base_version, partition
        )
        info = CommitInfo(random_uuid(), "adopt", this_engine())
        try:
            state = target.log.commit(state, build, info)
        except CommitConflictError as exc:
            raise CommitConflictError(f"topic {target.log.paths.topic}: {exc}") from exc
        return CHECKPOINTER.offer(target.log, state)


def _reason_to_leave(state: TopicState, topic: BrokerTopic, log: RawPartition) -> str:
    """Return why a partition is not copied, empty if it is; refuse one that differs."""
    number = log.name.partition
    if not state.topic_id:
        return ""
    if topic.topic_id not in ("", state.topic_id) or len(topic.logs) > state.partitions:
        raise KlogError(
            f"topic {topic.name} is in the root already, with id {state.topic_id} and "
            f"{state.partitions} partitions, and the broker's has id {topic.topic_id or 'none'} "
            f"and {len(topic.logs)}; import it into another root"
        )
    if not state.log_end[number]:
        return "" if log.log_end else _IMPORTED
    if log.log_end and not state.log_start[number] and _is_written(state, number):
        raise KlogError(
            f"{log.name} has records that klog wrote before the import; import it into another root"
        )
    if not topic.topic_id and not _has_segments(state, log):
        raise KlogError(
            f"{log.name} is in the root already, with other segments, and the broker's directory "
            "does not have the topic's id; import it into another root"
        )
    if state.log_end[number] < log.log_end:
        raise KlogError(
            f"{log.name} was imported up to offset {state.log_end[number]}, and the broker's ends "
            f"at {log.log_end} now; import it into another root"
        )
    return _IMPORTED


def _is_written(state: TopicState, partition: int) -> bool:
    """Return whether klog's writer made the first segment of a partition."""
    segments = segment_entries.rows_of_partition(state.segments.combine_chunks(), partition)
    return bool(len(segments)) and segments["origin"][0].as_py() == "append"


def _has_segments(state: TopicState, log: RawPartition) -> bool:
    """Return whether a partition has the segments that an import of this one makes."""
    segments = state.segments.combine_chunks()
    segments = segment_entries.rows_of_partition(segments, log.name.partition)
    imported = {(entry["base_offset"], entry["size_bytes"]) for entry in segments.to_pylist()}
    return {
        (readable.segment.base_offset, readable.size_bytes) for readable in readable_segments(log)
    } <= imported
