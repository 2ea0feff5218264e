"""The plan of a write: what all its tasks have in common, planned once on the driver.

The rule: all tasks write on top of the same state of the topic that the write names. The version of
that state is the base version of their files, and its log end offsets are the first offsets that
they write. Each task counts offsets as if it were the only one; the commit shifts the segments that
it puts after others. The leader epoch is that of the partition's last segment, so that epochs never
fall along a log. A new partition starts with epoch 0: followers of a broker refuse a log whose
epoch is -1, "not known".

A topic that only a row names is planned by the task that meets the row (`load_topic_plan`).
docs/write-plan.md specifies the plan for other engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.klog_root import check_topic_name
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_path import attempt_id
from klog.connector.commit_log.topic_admin import refuse_collision
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.write_options import WriteOptions
from klog.connector.producer_ids import ProducerIdentity, producer_identity
from klog.connector.sink.topic_state_cache import (
    TOPIC_STATES,
    CachedTopic,
    find_or_create_write_root,
)
from klog.connector.sink.write_settings import WriteSettings, parse_buffer_bytes, parse_settings
from klog.errors import OptionError
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """One attempt to run one task.

    Attributes:
        index: The number of the task in its write, from 0.
        attempt_id: 16 hex digits in the names of the files of this attempt only (`attempt_id`).
        now_ms: The time of staging, the same for all rows of the task.
        producer: The producer in the headers of the batches.
        name: The task in error messages; empty if the write has only one.
    """

    index: int
    attempt_id: str
    now_ms: int
    producer: ProducerIdentity
    name: str = ""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The plan for one topic.

    Attributes:
        topic: The name of the topic.
        topic_id: Its id; empty if the topic does not exist yet.
        base_version: The version of the topic's state that this plan is made from.
        log_ends: The log end offset of each partition.
        leader_epochs: The leader epoch of each partition.
        settings: How rows become segments.
    """

    topic: str
    topic_id: str
    base_version: int
    log_ends: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    settings: WriteSettings

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.log_ends)

    def staged(self, segments: Sequence[SegmentEntry]) -> StagedSegments:
        """Return staged segments with the facts of this plan that the commit checks.

        Args:
            segments: The segments that are on the store, in order.
        """
        return StagedSegments(self.topic_id, self.base_version, segments, self.partitions)

    def batch_attributes(self, task: TaskAttempt, partition: int) -> BatchAttributes:
        """Return what the batches of a task in a partition have in common; sequences start at 0.

        Args:
            task: The attempt that writes the batches.
            partition: The partition.
        """
        return BatchAttributes(
            batch_bytes=self.settings.batch_bytes,
            codec=self.settings.codec,
            level=self.settings.level,
            leader_epoch=self.leader_epochs[partition],
            producer_id=task.producer.producer_id,
            producer_epoch=task.producer.epoch,
            base_sequence=0,
            append_time_ms=task.now_ms if self.settings.is_append_time else None,
        )


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The plan of a write, as each of its tasks gets it.

    Attributes:
        options: The options of the write.
        write_id: The id of the write in the commit log.
        new_partitions: How many partitions a topic gets that the write creates.
        topics: The plans that the driver has made, by topic.
        last_batches: The last batch that each writer has committed to the topic that the options
            name, by transactional id.
    """

    options: WriteOptions
    write_id: str
    new_partitions: int
    topics: Mapping[str, TopicPlan]
    last_batches: Mapping[str, int]

    def is_committed(self, writer: Writer | None) -> bool:
        """Return whether the named topic has this batch of the writer already.

        Args:
            writer: Who writes; None for a write without a transactional id.
        """
        return writer is not None and writer.batch_id <= self.last_batches.get(writer.name, -1)

    def task_attempt(
        self, writer: Writer | None, index: int, attempt: int, now_ms: int, name: str = ""
    ) -> TaskAttempt:
        """Return an attempt of a task.

        Args:
            writer: Who writes; None for a write without a transactional id.
            index: The number of the task in its write, from 0.
            attempt: A number that no other attempt of any task of the write has.
            now_ms: The time of staging.
            name: The task in error messages.
        """
        writer_name, batch = self._producer_name(writer)
        return TaskAttempt(
            index=index,
            attempt_id=attempt_id(self.write_id, attempt),
            now_ms=now_ms,
            producer=producer_identity(writer_name, index, batch),
            name=name,
        )

    def _producer_name(self, writer: Writer | None) -> tuple[str, int]:
        """Return the name and the batch that producer ids are derived from."""
        return (self.write_id, 0) if writer is None else (writer.name, writer.batch_id)


def load_write_plan(options: WriteOptions, *, is_streaming: bool = False) -> WritePlan:
    """Load what a write needs of its root and topic, and plan it, on the driver.

    A missing root is created if a missing topic may be created. The tasks of a stream get the last
    batches of all writers: the default name of a stream is the query id, which only tasks know.

    Args:
        options: The options of the write.
        is_streaming: Whether a stream writes.

    Raises:
        OptionError: There is no such root or topic, and it must not be created.
    """
    write_id = random_uuid()
    if options.topic is None:
        root = find_or_create_write_root(options)
        new_partitions = options.num_partitions or root.num_partitions
        return WritePlan(options, write_id, new_partitions, {}, {})
    cached = TOPIC_STATES.load(options, options.topic)
    last_batches = {
        name: transaction.batch_id
        for name, transaction in cached.state.writer_transactions.items()
        if name == options.transactional_id or (is_streaming and options.transactional_id is None)
    }
    new_partitions = options.num_partitions or cached.root.num_partitions
    plan = WritePlan(options, write_id, new_partitions, {}, last_batches)
    topic = _check_and_plan(plan, options.topic, cached)
    return replace(plan, topics={options.topic: topic})


def with_dead_letter_plan(plan: WritePlan) -> WritePlan:
    """Return a plan that has the topic for dead letters too: tasks in the JVM cannot plan it.

    Args:
        plan: The plan of a write.
    """
    topic = plan.options.dead_letter_topic
    if topic is None:
        return plan
    try:
        planned = load_topic_plan(plan, topic)
    except OptionError:
        return plan  # An error of the first row that is rejected, if there is one.
    return replace(plan, topics={**plan.topics, topic: planned})


def plan_append(
    paths: TopicPaths, state: TopicState, options: Mapping[str, str], write_id: str
) -> WritePlan:
    """Plan a write to one topic on top of a state that the caller has loaded.

    Args:
        paths: The paths of the topic.
        state: The state of its log.
        options: Options that win over the topic's configs (`SEGMENT_OPTIONS` of the option table).
        write_id: The id of the write.

    Raises:
        OptionError: The topic does not exist, or an option is wrong.
    """
    plan = plan_topic(paths.topic, state, options)
    write_options = WriteOptions(
        path=paths.root,
        topic=paths.topic,
        create_topic=False,
        segment_options=options,
        buffer_bytes=parse_buffer_bytes(options),
    )
    return WritePlan(write_options, write_id, plan.partitions, {paths.topic: plan}, {})


def load_topic_plan(plan: WritePlan, topic: str) -> TopicPlan:
    """Return the driver's plan for a topic, or load its state and plan in this process.

    Args:
        plan: The driver's plan.
        topic: The topic.

    Raises:
        OptionError: The write must not create the topic, or its name is not valid.
    """
    check_topic_name(topic)
    if topic in plan.topics:
        return plan.topics[topic]
    return _check_and_plan(plan, topic, TOPIC_STATES.load(plan.options, topic))


def plan_topic(
    topic: str, state: TopicState, options: Mapping[str, str], new_partitions: int | None = None
) -> TopicPlan:
    """Plan a write on top of a state of a topic.

    Args:
        topic: The name of the topic.
        state: The state of its log.
        options: Options that win over the topic's configs (`SEGMENT_OPTIONS` of the option table).
        new_partitions: How many partitions the topic gets if the write creates it; None if the
            write must not create it.

    Raises:
        OptionError: The topic does not exist and must not be created, or an option is wrong.
    """
    log_ends, leader_epochs = state.log_end, _leader_epochs(state)
    if not state.topic_id:
        if new_partitions is None:
            raise OptionError(f"there is no topic {topic}; create it with klog topics create")
        log_ends = leader_epochs = (0,) * new_partitions
    return TopicPlan(
        topic=topic,
        topic_id=state.topic_id,
        base_version=max(state.version, 0),
        log_ends=log_ends,
        leader_epochs=leader_epochs,
        settings=parse_settings(state.config, options),
    )


def _check_and_plan(plan: WritePlan, topic: str, cached: CachedTopic) -> TopicPlan:
    """Plan a write to a topic, if the write may create it or it exists."""
    options, state = plan.options, cached.state
    if not state.topic_id and not options.create_topic:
        raise OptionError(
            f"there is no topic {topic} in {options.path}, and createTopic=false; create it with "
            "klog topics create"
        )
    segment_options = options.segment_options
    if topic == options.dead_letter_topic:
        # A record that is too large for its own topic has to fit here, unless this topic itself
        # sets a limit.
        is_set = "max.message.bytes" in state.config
        segment_options = {} if is_set else {"max.message.bytes": str(MAX_BATCH_BYTES)}
    if not state.topic_id:
        refuse_collision(cached.root, topic)
    else:
        check_partition_count(options, topic, state.partitions)
    return plan_topic(topic, state, segment_options, plan.new_partitions)


def check_partition_count(options: WriteOptions, topic: str, partitions: int) -> None:
    """Check that the option `numPartitions`, if it is set, is the number that a topic has.

    Args:
        options: The options of the write.
        topic: The name of the topic, which exists.
        partitions: The number of its partitions.

    Raises:
        OptionError: The option has another number, and the topic is not the one for dead letters.
    """
    if options.num_partitions in (None, partitions) or topic == options.dead_letter_topic:
        return
    raise OptionError(
        f"numPartitions: topic {topic} has {partitions} partitions, got {options.num_partitions}. "
        f"Set {partitions} or leave it out; klog topics alter --partitions raises the number"
    )


def _leader_epochs(state: TopicState) -> tuple[int, ...]:
    segment_epochs = state.segments["leader_epoch"]
    max_epoch = pc.max(segment_epochs).as_py()
    if max_epoch is None or max_epoch <= 0:  # Only adopted logs have higher ones.
        return (0,) * state.partitions
    epochs = np.zeros(state.partitions, np.int64)
    np.maximum.at(epochs, state.segments["partition"].to_numpy(), segment_epochs.to_numpy())
    return tuple(epochs.tolist())
