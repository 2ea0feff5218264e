"""The commit of a write: what its tasks staged, each topic in one commit.

The rule: a commit makes all segments of a topic visible in one step, in the order of partition,
task and roll. A writer with a transactional id commits each batch exactly once: a batch that the
log has already is recognised by the writer's name and its number, and not written again. Each of
several topics commits on its own, in the order of their names, so that a crash may leave the write
in some of them; the same write again completes it. Dead letters are committed first: if a topic has
a batch, its dead letters are there too.

Nothing is ever deleted here: a commit whose answer was lost may have landed, and its files must
stay. Files that no commit names are orphans, which vacuum removes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

from klog.connector.commit_log import append_commit
from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Topic, WriterTransaction
from klog.connector.commit_log.commit_history import read_newest_first
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.topic_admin import refuse_collision
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink.task_writer import TaskCommitMessage
from klog.connector.sink.topic_state_cache import TOPIC_STATES, CachedTopic
from klog.connector.sink.write_plan import check_partition_count
from klog.errors import CommitConflictError, KlogError, OptionError, with_context

MAX_FILES_PER_PARTITION = 4
"""A write that leaves more files in a partition warns and names the remedy."""
CHECKPOINT_WAIT_SECONDS = 5.0
"""A commit waits so long for a checkpoint that is due: Spark may end the process on return."""


def commit(options: WriteOptions, messages: Sequence[TaskCommitMessage]) -> None:
    """Commit what the tasks of one write staged.

    Args:
        options: The options of the write.
        messages: The messages of all its tasks.

    Raises:
        CommitConflictError, ProducerFencedError, CommitStateUnknownError: As `CommitLog.commit`,
            for the first topic that could not be committed. The message names the topics that were
            committed before it.
    """
    if not messages:
        return
    writer, write_id = messages[0].writer, messages[0].write_id
    by_topic = _staged_by_topic(options, messages)
    _refuse_collisions(by_topic)
    for topic, parts in by_topic.items():  # Tasks do not know the option.
        for part in parts:
            if part.topic_id and part.partitions is not None:
                check_partition_count(options, topic, part.partitions)
    committed: list[str] = []
    for topic in sorted(by_topic, key=lambda topic: (topic != options.dead_letter_topic, topic)):
        try:
            if options.topic == topic and any(message.is_committed for message in messages):
                assert writer is not None
                _check_is_committed(options, topic, writer)
            elif writer is not None or any(staged.segments for staged in by_topic[topic]):
                _commit_topic(options, topic, by_topic[topic], writer, write_id)
        except (KlogError, OSError) as exc:
            text = f"topic {topic} of {options.path}: {exc}{_written_before(committed, writer)}"
            raise with_context(exc, text) from exc
        committed.append(topic)
    # After all commits: a warning may be an error, and must not keep a topic from its commit.
    for topic, parts in by_topic.items():
        _warn_of_many_files(topic, parts)


def _staged_by_topic(
    options: WriteOptions, messages: Sequence[TaskCommitMessage]
) -> dict[str, list[StagedSegments]]:
    """Return what was staged for each topic, in the order of tasks."""
    write = (messages[0].writer, messages[0].write_id)
    if any((message.writer, message.write_id) != write for message in messages):
        write_ids = ", ".join(sorted({message.write_id for message in messages}))
        raise KlogError(
            f"tasks of several writes were to be committed as one: {write_ids}. Write it again"
        )
    by_topic: dict[str, list[StagedSegments]] = {}
    if options.topic is not None:
        by_topic[options.topic] = []  # It gets the writer's number even if there are no rows.
    for message in sorted(messages, key=lambda message: message.task):
        for topic, staged in message.topics.items():
            by_topic.setdefault(topic, []).append(staged)
    return by_topic


def _refuse_collisions(by_topic: Mapping[str, Sequence[StagedSegments]]) -> None:
    """Refuse new topics whose names differ only in '.' and '_', before the first is created."""
    new_topics = sorted(
        topic for topic, parts in by_topic.items() if any(not part.topic_id for part in parts)
    )
    by_metric_name: dict[str, str] = {}
    for topic in new_topics:
        other = by_metric_name.setdefault(topic.replace(".", "_"), topic)
        if other != topic:
            raise OptionError(
                f"topics {other} and {topic} collide: a broker does not tell '.' from '_' in the "
                "names of its metrics, and could not have both. Give one of them another name"
            )


def _commit_topic(
    options: WriteOptions,
    topic: str,
    parts: Sequence[StagedSegments],
    writer: Writer | None,
    write_id: str,
) -> None:
    if parts:
        staged = _join(parts)
        cached = TOPIC_STATES.load_unless_at(
            options, topic, staged.topic_id, max(part.base_version for part in parts)
        )
    else:
        cached = TOPIC_STATES.load(options, topic)
        staged = StagedSegments(cached.state.topic_id, max(cached.state.version, 0), [])
    if topic == options.dead_letter_topic and writer is not None:
        _check_dead_letters(cached, staged, writer)
    create, log = None, cached.log
    if not staged.topic_id:
        if not options.create_topic:
            raise OptionError(
                "there is no such topic, and createTopic=false; create it with klog topics create"
            )
        partitions = staged.partitions or options.num_partitions or cached.root.num_partitions
        create = Topic(random_uuid(), partitions)
        refuse_collision(cached.root, topic)
        log = cached.root.new_log(topic)
    if writer is not None and topic == options.topic and options.transaction_version is None:
        _warn_of_missing_batches(topic, cached.state.writer_transactions.get(writer.name), writer)
    commit_info = CommitInfo(write_id, "append", this_engine("Spark"))
    build = append_commit.append(staged, writer, create)
    state = log.commit(cached.state, build, commit_info)
    checkpointed = CHECKPOINTER.offer(log, state)
    if checkpointed.checkpoint != state.checkpoint:
        CHECKPOINTER.join(CHECKPOINT_WAIT_SECONDS)
    TOPIC_STATES.keep(options, CachedTopic(cached.root, log, checkpointed))


def _check_is_committed(options: WriteOptions, topic: str, writer: Writer) -> None:
    """Check that the topic still has the batch that tasks did not stage again."""
    cached = TOPIC_STATES.load(options, topic)
    if not append_commit.is_committed(cached.state, writer):
        raise CommitConflictError("the topic was re-created meanwhile; write it again")


def _check_dead_letters(cached: CachedTopic, staged: StagedSegments, writer: Writer) -> None:
    """Refuse a batch that comes again with other dead letters than those committed.

    Clocks and configs decide which rows are rejected, so a replay may decide otherwise, and a row
    would be in both topics or in neither. Raises `LostCommitError` if the commit of the dead
    letters is lost.
    """
    last = cached.state.writer_transactions.get(writer.name)
    if last is None or last.batch_id != writer.batch_id or last.query_id != writer.query_id:
        return
    # If log expiration has removed the commit, it is so old that the other topics are done too.
    for commit in read_newest_first(cached.log, cached.state):
        if _has_batch(commit.actions.writer_transaction, writer):
            committed = sum(segment["record_count"] for segment in commit.actions.add)
            replayed = sum(segment["record_count"] for segment in staged.segments)
            if committed != replayed:
                raise KlogError(
                    f"batch {writer.batch_id} of {writer.name!r} has {committed} dead letters "
                    f"there already, and {replayed} now: times or configs made the difference. "
                    "Set the configs so that the same rows are rejected, then write it again"
                )
            return


def _has_batch(transaction: WriterTransaction | None, writer: Writer) -> bool:
    return transaction is not None and (transaction.name, transaction.batch_id) == (
        writer.name,
        writer.batch_id,
    )


def _warn_of_missing_batches(topic: str, last: WriterTransaction | None, writer: Writer) -> None:
    """Warn if batches of a stream between the last committed one and this one are missing.

    Each micro-batch that has a task commits its number, so the commits of these may be lost. Spark
    may also have run one without a task, or they were written elsewhere.
    """
    if last is None or last.query_id != writer.query_id or writer.batch_id <= last.batch_id + 1:
        return
    warnings.warn(
        f"{topic}: query {writer.query_id} writes batch {writer.batch_id}, and its last batch "
        f"there is {last.batch_id}. If those between had rows, the topic's last commits are lost: "
        f"check it with `klog verify --topic {topic}`, and restore them from a copy",
        stacklevel=2,
    )


def _join(parts: Sequence[StagedSegments]) -> StagedSegments:
    """Join what tasks staged: by partition, and within a partition by task."""
    first = parts[0]
    if any((p.topic_id, p.partitions) != (first.topic_id, first.partitions) for p in parts):
        raise CommitConflictError(
            "the topic was created, altered or deleted while this write ran, so that its tasks "
            "wrote for different topics; write it again"
        )
    segments = [segment for part in parts for segment in part.segments]
    segments.sort(key=lambda segment: int(segment["partition"]))
    base_version = min(part.base_version for part in parts)
    return StagedSegments(first.topic_id, base_version, segments, first.partitions)


def _warn_of_many_files(topic: str, parts: Sequence[StagedSegments]) -> None:
    files = Counter(segment["partition"] for part in parts for segment in part.segments)
    max_files = max(files.values(), default=0)
    if max_files > MAX_FILES_PER_PARTITION:
        warnings.warn(
            f"{topic}: this write left {max_files} files in one partition, because so many tasks "
            "had rows for it, or its segments are small. klog.repartition(df, root, topic) before "
            "the write leaves one file per partition",
            stacklevel=2,
        )


def _written_before(committed: Sequence[str], writer: Writer | None) -> str:
    """Return what an error says of the topics that were committed before it."""
    if not committed:
        return ""
    remedy = (
        "the same write again completes it"
        if writer is not None
        else "give a write to several topics a transactionalId, so that it can be completed"
    )
    return f". Written before: {', '.join(committed)}; {remedy}"
