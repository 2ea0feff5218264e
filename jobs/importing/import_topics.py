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
from klog.connector.commit_log.topic_admin import collision, similar_names
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
_OTHER_ROOT = "import it into another root"


@dataclass(frozen=True, slots=True)
class _Target:
    """A topic in the klog root: its log, its last state, and the topic to create.

    The import is planned on `base_version`.
    """

    log: CommitLog
    state: TopicState
    base_version: int
    topic: Topic
    config: Mapping[str, str]


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
            state: TopicState | Failure = TopicState()
            if self.root is not None:
                state = _load_state(self.root, topic.name)
            for log in topic.logs:
                yield _report(state, topic, log)

    def import_topics(
        self, spark: SparkSession | None, topics: Sequence[BrokerTopic]
    ) -> Iterator[AdoptedPartition]:
        """Import topics, and yield the report of each partition.

        Args:
            spark: The session that runs the tasks; None for this process.
            topics: The topics.
        """
        assert self.root is not None
        for wave in topic_waves(topics):
            states = {topic.name: _load_state(self.root, topic.name) for topic in wave}
            targets = {
                topic.name: self._target(self.root, topic, state)
                for topic in wave
                if not isinstance(state := states[topic.name], Failure)
            }
            reports = {
                log.name: _report(states[topic.name], topic, log)
                for topic in wave
                for log in topic.logs
            }
            tasks = [
                task
                for topic in wave
                for log in topic.logs
                if reports[log.name].is_taken
                for task in self._copy_tasks(targets[topic.name], log)
            ]
            results = try_tasks(spark, copy_segment, tasks, "import")
            for topic in wave:
                target = targets.get(topic.name)
                for log in topic.logs:
                    report = reports[log.name]
                    if target is None or not report.is_taken:
                        yield report
                        continue
                    scans = take_results(results, len(readable_segments(log)))
                    try:
                        if isinstance(scans, FailedTask):
                            raise scans.error
                        partition = partition_from_scans(
                            topic, log, iter(scans), self.open_transactions
                        )
                        target = replace(target, state=self._commit(target, partition))
                    except OptionError:
                        raise
                    except (KlogError, OSError) as exc:
                        yield replace(report, failure=Failure.of(exc, topic.name, _DIAGNOSIS))
                    else:
                        yield report.with_commit(partition)

    def _target(self, root: KlogRoot, topic: BrokerTopic, state: TopicState) -> _Target:
        log = root.new_log(topic.name)
        topic_id = state.topic_id or topic.topic_id or random_uuid()
        config = state.config or topic.inferred_config(self.config)
        base_version = max(state.version, 0)
        return _Target(log, state, base_version, Topic(topic_id, len(topic.logs)), config)

    def _copy_tasks(self, target: _Target, log: RawPartition) -> Iterator[CopyTask]:
        assert self.root is not None
        interval_bytes = parse_topic_config(target.config).number("index.interval.bytes")
        for task in scan_tasks(log, self.storage):
            yield CopyTask(task, self.root.location, target.base_version, interval_bytes)

    def _commit(self, target: _Target, partition: BrokerPartition) -> TopicState:
        build = adoption_commit.import_partition(
            target.topic, target.config, target.base_version, partition
        )
        info = CommitInfo(random_uuid(), "adopt", this_engine())
        try:
            state = target.log.commit(target.state, build, info)
        except CommitConflictError as exc:
            raise CommitConflictError(f"topic {target.log.paths.topic}: {exc}") from exc
        return CHECKPOINTER.offer(target.log, state)


def _load_state(root: KlogRoot, topic: str) -> TopicState | Failure:
    """Return the state of a topic of the root, or why nothing can be imported into it."""
    name = topic
    try:
        state = root.log_to_write(topic).load()
        if state.topic_id:
            return state
        for name in similar_names(root, topic):
            if root.log_to_read(name).load().topic_id:
                return Failure(collision(topic, name), None, None, _OTHER_ROOT)
    except OptionError:
        raise
    except (KlogError, OSError) as exc:
        return Failure.of(exc, name)
    return state


def _report(state: TopicState | Failure, topic: BrokerTopic, log: RawPartition) -> AdoptedPartition:
    """Return the report of a partition: it is taken, imported already, or refused."""
    report = AdoptedPartition.of_log(log)
    if isinstance(state, Failure):
        return replace(report, failure=state)
    if not state.topic_id:
        return report
    refusal = _refusal(state, topic, log)
    if refusal:
        return replace(report, failure=Failure(refusal, None, None, _OTHER_ROOT))
    is_new = log.log_end and not state.log_end[log.name.partition]
    return report if is_new else replace(report, left=_IMPORTED)


def _refusal(state: TopicState, topic: BrokerTopic, log: RawPartition) -> str:
    """Return why the root's topic is not what an import of the partition makes; empty if it is."""
    number = log.name.partition
    if topic.topic_id not in ("", state.topic_id) or len(topic.logs) > state.partitions:
        return (
            f"topic {topic.name} is in the root already, with id {state.topic_id} and "
            f"{state.partitions} partitions, and the broker's has id {topic.topic_id or 'none'} "
            f"and {len(topic.logs)}"
        )
    if not state.log_end[number]:
        return ""
    if log.log_end and not state.log_start[number] and _is_written(state, number):
        return f"{log.name} has records that klog wrote before the import"
    if not topic.topic_id and not _has_segments(state, log):
        return (
            f"{log.name} is in the root already, with other segments, and the broker's directory "
            "does not have the topic's id"
        )
    if state.log_end[number] < log.log_end:
        return (
            f"{log.name} was imported up to offset {state.log_end[number]}, and the broker's ends "
            f"at {log.log_end} now"
        )
    return ""


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
