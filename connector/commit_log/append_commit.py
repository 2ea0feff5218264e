"""The commit of an append: staged segments after the log ends.

The rule: a batch of a transactional id is committed once. An append that does not fit the state any
more (another topic id, other partitions, files that vacuum may have deleted) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions, Topic, WriterTransaction
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import AlreadyCommittedError, CommitConflictError, ProducerFencedError

MAX_REMEMBERED_RUNS = 32


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer with a transactional id, and its batch: a run of a query numbers its batches."""

    name: str
    batch_id: int
    query_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class StagedSegments:
    """Segments that a write has put on the store, in the order that they are to have in the log.

    Their offsets are those in the files; they start at the end of the partition as of
    `base_version`. `partitions` is the number of partitions that rows were spread over, None if
    nothing was spread. `topic_id` is empty if there was no topic: the commit then creates it.
    """

    topic_id: str
    base_version: int
    segments: Sequence[segment_entries.SegmentEntry]
    partitions: int | None = None


def append(
    staged: StagedSegments, writer: Writer | None = None, create: Topic | None = None
) -> CommitBuilder:
    """Return the builder of a commit that adds staged segments after the log ends.

    A named writer's batch is added exactly once. If the topic did not exist when the segments were
    staged, the same commit creates it. A topic that another process created meanwhile will do if it
    has no configs and the same number of partitions.

    Args:
        staged: The segments.
        writer: The writer and its batch; None for a write without a transactional id.
        create: The topic to create if there is none.

    Returns:
        The builder. It raises `CommitConflictError` if the topic is not the one of the write,
        vacuum may have deleted the files, or they are in the log already. It raises
        `ProducerFencedError` if another run, or another query with later batches, has taken over
        the transactional id.
    """

    def build(state: TopicState) -> Actions | None:
        transaction = None
        if writer is not None:
            if is_committed(state, writer):
                return None
            transaction = _next_transaction(state, writer)
        new_topic = None if state.topic_id or staged.topic_id else create
        if new_topic is None:
            _check_target(state, staged)
        commit_checks.check_base_version(state, staged.base_version)
        _check_not_committed(state, staged)
        ends = dict(enumerate((0,) * new_topic.partitions if new_topic else state.log_end))
        added = []
        for segment in staged.segments:
            partition = segment["partition"]
            if partition not in ends:
                raise CommitConflictError(f"partition {partition} no longer exists; write it again")
            shift = ends[partition] - segment["base_offset"]
            added.append(with_offset_shift(segment, shift))
            ends[partition] += segment["next_offset"] - segment["base_offset"]
        changed = {entry["partition"]: ends[entry["partition"]] for entry in added}
        return Actions(
            add=tuple(added),
            writer_transaction=transaction,
            asserted_log_end=changed,
            create_topic=new_topic,
        )

    return build


def with_offset_shift(
    segment: segment_entries.SegmentEntry, shift: int
) -> segment_entries.SegmentEntry:
    """Return the entry of a segment with higher offsets.

    Args:
        segment: The entry.
        shift: The number to add to its offsets.
    """
    return {
        **segment,
        "base_offset": segment["base_offset"] + shift,
        "next_offset": segment["next_offset"] + shift,
        "offset_shift": segment["offset_shift"] + shift,
    }


def is_committed(state: TopicState, writer: Writer) -> bool:
    """Return whether the log has this batch of a writer.

    Args:
        state: The state of the topic.
        writer: The writer and its batch.

    Raises:
        ProducerFencedError: The number says so, but the batch is one of another query, which wrote
            other rows.
    """
    last = state.writer_transactions.get(writer.name)
    if last is None or writer.batch_id > last.batch_id:
        return False
    if last.query_id != writer.query_id:
        raise ProducerFencedError(
            f"transactional id {writer.name!r} has written batch {last.batch_id} as "
            f"{_query(last.query_id)}, and {_query(writer.query_id)} comes with batch "
            f"{writer.batch_id}: it would be skipped. Use another transactional id, or the "
            "checkpoint of that query"
        )
    return True


def _query(query_id: str) -> str:
    return f"query {query_id}" if query_id else "a write outside of a query"


def _next_transaction(state: TopicState, writer: Writer) -> WriterTransaction:
    last = state.writer_transactions.get(writer.name)
    if last is None:
        return WriterTransaction(writer.name, writer.batch_id, writer.query_id, writer.run_id)
    superseded = last.superseded
    if writer.run_id in superseded:
        raise ProducerFencedError(
            f"transactional id {writer.name!r}: run {last.run_id} has taken over from run "
            f"{writer.run_id}, which must stop"
        )
    if last.run_id != writer.run_id:
        superseded = (*superseded, last.run_id)[-MAX_REMEMBERED_RUNS:]
    return WriterTransaction(
        writer.name, writer.batch_id, writer.query_id, writer.run_id, superseded
    )


def _check_target(state: TopicState, staged: StagedSegments) -> None:
    """Refuse a topic that is not the one of the write, or has other configs or partitions."""
    if staged.topic_id or not state.topic_id:
        commit_checks.check_same_topic(state, staged.topic_id)
    elif state.config:
        raise CommitConflictError(
            "the topic was created meanwhile, with configs that this write did not use; write it "
            "again"
        )
    _check_partitions(state, staged.partitions)


def _check_partitions(state: TopicState, partitions: int | None) -> None:
    if partitions not in (None, state.partitions):
        raise CommitConflictError(
            f"the topic has {state.partitions} partitions now, rows were spread over {partitions}: "
            "a key would be in two partitions. Write it again"
        )


def _check_not_committed(state: TopicState, staged: StagedSegments) -> None:
    """Refuse segments that an earlier try committed under another write id."""
    files = [segment["file"] for segment in staged.segments]
    _, removed = segment_entries.split_by_files(state.removed, files)
    # The first commit of a log also has files of base version 0.
    committed = state.live.live_files_among(files, staged.base_version or -1) | set(
        removed["file"].to_pylist()
    )
    if committed:
        raise AlreadyCommittedError(
            f"{len(committed)} of {len(files)} segments of this write are in the log already, "
            f"such as {min(committed)}: the write was committed before. You have nothing to do"
        )
