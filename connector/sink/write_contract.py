"""The write plan and the messages of tasks as plain dicts, which other processes and engines read.

The rule: docs/write-plan.md specifies each field, and tests/contracts/write_plan has golden files.
A reader ignores fields that it does not know, and refuses a format above `FORMAT`. A plan has no
credentials: a task takes them from the options of the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict, cast

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.contract_format import check_contract_format
from klog.connector.options.storage_options import StorageOptions
from klog.connector.options.write_option_table import PARTITIONERS
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink.task_writer import TaskCommitMessage
from klog.connector.sink.write_plan import TopicPlan, WritePlan
from klog.connector.sink.write_settings import WriteSettings
from klog.errors import UnsupportedFormatError
from klog.logformat.codecs.codec_names import CODEC_NAMES, codec_number
from klog.logformat.segments.segment_rolling import RollLimits

FORMAT = 1

_ONE_VERSION = "Use one version of klog on the driver and on all executors"


class SettingsDict(TypedDict):
    """How rows become segments; sizes in bytes, times in ms."""

    codec: str
    compressionLevel: int | None
    batchBytes: int
    maxBatchBytes: int
    segmentBytes: int
    segmentMs: int
    segmentIndexBytes: int
    indexIntervalBytes: int
    minIndexedBytes: int
    isAppendTime: bool
    isCompacted: bool
    beforeMaxMs: int | None
    afterMaxMs: int | None
    partitioner: str


class TopicPlanDict(TypedDict):
    """The plan for one topic."""

    topicId: str
    baseVersion: int
    logEnds: list[int]
    leaderEpochs: list[int]
    settings: SettingsDict


class WritePlanDict(TypedDict):
    """The plan of a write."""

    format: int
    writeId: str
    root: str
    topic: str | None
    deadLetterTopic: str | None
    transactionalId: str | None
    transactionVersion: int | None
    bufferBytes: int
    topics: dict[str, TopicPlanDict]
    lastBatches: dict[str, int]
    createTopic: bool
    newPartitions: int
    options: dict[str, str]


class WriterDict(TypedDict):
    """Who writes under a transactional id."""

    name: str
    batchId: int
    queryId: str
    runId: str


class SegmentDict(TypedDict):
    """A segment that a task staged, as a commit's `add` has it."""

    partition: int
    file: str
    baseOffset: int
    nextOffset: int
    offsetShift: int
    sizeBytes: int
    indexBytes: int
    timeIndexBytes: int
    crc32c: int
    recordCount: int
    batchCount: int
    minTimestampMs: int
    maxTimestampMs: int
    leaderEpoch: int
    codec: str
    producerIds: list[int]
    origin: str


class StagedTopicDict(TypedDict):
    """The segments that a task staged for one topic."""

    topicId: str
    baseVersion: int
    partitions: int | None
    segments: list[SegmentDict]


class CommitMessageDict(TypedDict):
    """What a task has done, for the commit."""

    format: int
    writeId: str
    task: int
    writer: WriterDict | None
    isCommitted: bool
    topics: dict[str, StagedTopicDict]


def plan_to_dict(plan: WritePlan) -> WritePlanDict:
    """Return the plan as plain values.

    Args:
        plan: The plan of a write.
    """
    options = plan.options
    return {
        "format": FORMAT,
        "writeId": plan.write_id,
        "root": options.path,
        "topic": options.topic,
        "deadLetterTopic": options.dead_letter_topic,
        "transactionalId": options.transactional_id,
        "transactionVersion": options.transaction_version,
        "bufferBytes": options.buffer_bytes,
        "topics": {topic: _topic_to_dict(planned) for topic, planned in plan.topics.items()},
        "lastBatches": dict(plan.last_batches),
        "createTopic": options.create_topic,
        "newPartitions": plan.new_partitions,
        "options": dict(options.segment_options),
    }


def plan_from_dict(fields: Mapping[str, Any], storage: StorageOptions) -> WritePlan:
    """Return the plan that `plan_to_dict` has made.

    Args:
        fields: A `WritePlanDict`, maybe of another version of klog.
        storage: The `storage.*` options of the write.

    Raises:
        UnsupportedFormatError: The format is too new, a field is missing, or it names a codec or a
            partitioner that this klog does not have.
    """
    with _checked("write plan", fields):
        options = WriteOptions(
            path=fields["root"],
            topic=fields["topic"],
            transactional_id=fields["transactionalId"],
            transaction_version=fields["transactionVersion"],
            create_topic=fields["createTopic"],
            dead_letter_topic=fields["deadLetterTopic"],
            segment_options=fields["options"],
            buffer_bytes=fields["bufferBytes"],
            storage=storage,
        )
        return WritePlan(
            options=options,
            write_id=fields["writeId"],
            new_partitions=fields["newPartitions"],
            topics={
                topic: _topic_from_dict(topic, planned)
                for topic, planned in fields["topics"].items()
            },
            last_batches=fields["lastBatches"],
        )


def message_to_dict(message: TaskCommitMessage) -> CommitMessageDict:
    """Return the message of a task as plain values.

    Args:
        message: The message of a task.
    """
    writer = message.writer
    return {
        "format": FORMAT,
        "writeId": message.write_id,
        "task": message.task,
        "writer": None if writer is None else _writer_to_dict(writer),
        "isCommitted": message.is_committed,
        "topics": {topic: _staged_to_dict(staged) for topic, staged in message.topics.items()},
    }


def message_from_dict(fields: Mapping[str, Any]) -> TaskCommitMessage:
    """Return the message that `message_to_dict` has made.

    Args:
        fields: A `CommitMessageDict`, maybe of another version of klog.

    Raises:
        UnsupportedFormatError: The format is too new, a field is missing, or a segment is not one
            that a commit may name.
    """
    with _checked("message of a task", fields):
        writer = fields["writer"]
        return TaskCommitMessage(
            task=fields["task"],
            write_id=fields["writeId"],
            writer=None if writer is None else _writer_from_dict(writer),
            topics={
                topic: _staged_from_dict(topic, staged)
                for topic, staged in fields["topics"].items()
            },
            is_committed=fields["isCommitted"],
        )


@contextmanager
def _checked(name: str, fields: Mapping[str, Any]) -> Iterator[None]:
    """Check the format, and name a field that is missing."""
    check_contract_format(name, fields.get("format"), FORMAT)
    try:
        yield
    except KeyError as exc:
        raise UnsupportedFormatError(f"{name}: it has no field {exc}. {_ONE_VERSION}") from exc


def _topic_to_dict(plan: TopicPlan) -> TopicPlanDict:
    settings = plan.settings
    return {
        "topicId": plan.topic_id,
        "baseVersion": plan.base_version,
        "logEnds": list(plan.log_ends),
        "leaderEpochs": list(plan.leader_epochs),
        "settings": {
            "codec": CODEC_NAMES[settings.codec],
            "compressionLevel": settings.level,
            "batchBytes": settings.batch_bytes,
            "maxBatchBytes": settings.max_batch_bytes,
            "segmentBytes": settings.limits.segment_bytes,
            "segmentMs": settings.limits.segment_ms,
            "segmentIndexBytes": settings.limits.segment_index_bytes,
            "indexIntervalBytes": settings.limits.index_interval_bytes,
            "minIndexedBytes": settings.min_indexed_bytes,
            "isAppendTime": settings.is_append_time,
            "isCompacted": settings.is_compacted,
            "beforeMaxMs": settings.before_max_ms,
            "afterMaxMs": settings.after_max_ms,
            "partitioner": settings.partitioner,
        },
    }


def _topic_from_dict(topic: str, fields: Mapping[str, Any]) -> TopicPlan:
    settings = fields["settings"]
    return TopicPlan(
        topic=topic,
        topic_id=fields["topicId"],
        base_version=fields["baseVersion"],
        log_ends=tuple(fields["logEnds"]),
        leader_epochs=tuple(fields["leaderEpochs"]),
        settings=WriteSettings(
            codec=_codec(settings["codec"]),
            level=settings["compressionLevel"],
            batch_bytes=settings["batchBytes"],
            max_batch_bytes=settings["maxBatchBytes"],
            limits=RollLimits(
                segment_bytes=settings["segmentBytes"],
                segment_ms=settings["segmentMs"],
                segment_index_bytes=settings["segmentIndexBytes"],
                index_interval_bytes=settings["indexIntervalBytes"],
            ),
            min_indexed_bytes=settings["minIndexedBytes"],
            is_append_time=settings["isAppendTime"],
            is_compacted=settings["isCompacted"],
            before_max_ms=settings["beforeMaxMs"],
            after_max_ms=settings["afterMaxMs"],
            partitioner=_partitioner(settings["partitioner"]),
        ),
    )


def _codec(name: str) -> int:
    if name not in CODEC_NAMES:
        raise _unknown_value("codec", name)
    return codec_number(name)


def _partitioner(name: str) -> str:
    if name not in PARTITIONERS:
        raise _unknown_value("partitioner", name)
    return name


def _unknown_value(field: str, name: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(f"write plan: this klog has no {field} {name!r}. {_ONE_VERSION}")


def _writer_to_dict(writer: Writer) -> WriterDict:
    return {
        "name": writer.name,
        "batchId": writer.batch_id,
        "queryId": writer.query_id,
        "runId": writer.run_id,
    }


def _writer_from_dict(fields: Mapping[str, Any]) -> Writer:
    return Writer(fields["name"], fields["batchId"], fields["queryId"], fields["runId"])


def _staged_to_dict(staged: StagedSegments) -> StagedTopicDict:
    return {
        "topicId": staged.topic_id,
        "baseVersion": staged.base_version,
        "partitions": staged.partitions,
        "segments": [
            cast("SegmentDict", segment_entries.entry_to_json(segment))
            for segment in staged.segments
        ],
    }


def _staged_from_dict(topic: str, fields: Mapping[str, Any]) -> StagedSegments:
    segments = [segment_entries.entry_from_json(segment, topic) for segment in fields["segments"]]
    return StagedSegments(fields["topicId"], fields["baseVersion"], segments, fields["partitions"])
