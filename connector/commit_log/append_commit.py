"""Commit staged segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions, Topic, WriterTransaction
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, ProducerFencedError

MAX_REMEMBERED_RUNS = 32


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes under a transactional id: a batch by its number, of a run of a query."""

    name: str
    batch_id: int
    query_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class StagedSegments:
    """Segments that a write has put on the store, in the order they are to be in the log.

    Their offsets are those in the files, from where the partition ended as of `birth`. `partitions`
    is how many there were to choose from; None where nobody chose. `topic_id` is empty where there
    was no such topic, and the commit is to make it.
    """

    topic_id: str
    base_version: int
    segments: Sequence[segment_entries.SegmentEntry]
    partitions: int | None = None


def append(
    staged: StagedSegments, writer: Writer | None = None, create: Topic | None = None
) -> CommitBuilder:
    """Put staged segments behind the log's ends, exactly once for a named writer.

    What was staged for a topic that was not there makes it, as `create` says, in the same commit;
    one that another made meanwhile will do, if it is as this one would have been. Raises
    `CommitConflictError` if the topic is not the one that was written for, vacuum may have taken
    the files, or they are in the log already, and `ProducerFencedError` if another run, or another
    query with later batches, has taken over the name.
    """

    def build(state: TopicState) -> Actions | None:
        progress = None
        if writer is not None:
            if is_committed(state, writer):
                return None
            progress = _progress(state, writer)
        making = None if state.topic_id or staged.topic_id else create
        if making is None:
            _is_target(state, staged)
        commit_checks.check_base_version(state, staged.base_version)
        _not_there(state, staged)
        ends = dict(enumerate((0,) * making.partitions if making else state.log_end))
        added = []
        for segment in staged.segments:
            partition = segment["partition"]
            if partition not in ends:
                raise CommitConflictError(f"there is no partition {partition} any more")
            shift = ends[partition] - segment["base_offset"]
            added.append(with_offset_shift(segment, shift))
            ends[partition] += segment["next_offset"] - segment["base_offset"]
        changed = {entry["partition"]: ends[entry["partition"]] for entry in added}
        return Actions(
            add=tuple(added),
            writer_transaction=progress,
            asserted_log_end=changed,
            create_topic=making,
        )

    return build


def with_offset_shift(
    segment: segment_entries.SegmentEntry, shift: int
) -> segment_entries.SegmentEntry:
    """Give a segment whose offsets are so much higher than its file says."""
    return {
        **segment,
        "base_offset": segment["base_offset"] + shift,
        "next_offset": segment["next_offset"] + shift,
        "offset_shift": segment["offset_shift"] + shift,
    }


def is_committed(state: TopicState, writer: Writer) -> bool:
    """Tell whether the log has this writer's batch already.

    Raises `ProducerFencedError` where the number says so, but of another query: what it wrote is
    not what this one would.
    """
    found = state.writer_transactions.get(writer.name)
    if found is None or writer.batch_id > found.batch_id:
        return False
    if found.query_id != writer.query_id:
        raise ProducerFencedError(
            f"transactional id {writer.name!r} has written batch {found.batch_id} as "
            f"{_query(found.query_id)}, and {_query(writer.query_id)} comes with batch "
            f"{writer.batch_id}: it would be skipped. Use another transactional id, or the "
            "checkpoint of that query"
        )
    return True


def _query(query_id: str) -> str:
    return f"query {query_id}" if query_id else "a write outside of a query"


def _progress(state: TopicState, writer: Writer) -> WriterTransaction:
    found = state.writer_transactions.get(writer.name)
    if found is None:
        return WriterTransaction(writer.name, writer.batch_id, writer.query_id, writer.run_id)
    superseded = found.superseded
    if writer.run_id in superseded:
        raise ProducerFencedError(
            f"transactional id {writer.name!r}: run {found.run_id} has taken over from run "
            f"{writer.run_id}, which must stop"
        )
    if found.run_id != writer.run_id:
        superseded = (*superseded, found.run_id)[-MAX_REMEMBERED_RUNS:]
    return WriterTransaction(
        writer.name, writer.batch_id, writer.query_id, writer.run_id, superseded
    )


def _is_target(state: TopicState, staged: StagedSegments) -> None:
    """Refuse a topic that is not the one, or not as the one, that was written for."""
    if staged.topic_id or not state.topic_id:
        commit_checks.check_same_topic(state, staged.topic_id)
    elif state.config:
        raise CommitConflictError(
            "the topic was made meanwhile, with configs that this write did not go by: write it "
            "again"
        )
    _same_partitions(state, staged.partitions)


def _same_partitions(state: TopicState, partitions: int | None) -> None:
    if partitions not in (None, state.partitions):
        raise CommitConflictError(
            f"the topic has {state.partitions} partitions now, rows were spread over {partitions}: "
            "keys would lie in two places. Write it again"
        )


def _not_there(state: TopicState, staged: StagedSegments) -> None:
    """Refuse what an earlier try has committed under another write id."""
    files = [segment["file"] for segment in staged.segments]
    _, removed = segment_entries.split_by_files(state.removed, files)
    # Of birth 0 are also those that the first commit of a log has.
    found = state.live.live_files_among(files, staged.base_version or -1) | set(
        removed["file"].to_pylist()
    )
    if found:
        raise CommitConflictError(
            f"{len(found)} of {len(files)} segments of this write are in the log already, such as "
            f"{min(found)}: it was committed before, and nothing is to be done"
        )
