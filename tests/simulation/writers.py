"""Actors that append: Spark's streams, two queries with one name, and batch writers without one.

The rule: a writer does what the sink does. It stages a file for each partition from the state it
loaded, and commits. After an error it aborts, and a stream then starts again at the batch in its
checkpoint, with a new run id.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
)
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError, ProducerFencedError
from tests.simulation.cast import Batch, Cast
from tests.simulation.world import Actor, StoreDownError

Run = Callable[[Actor], None]


def stream(cast: Cast, query: str, batches: int, name: str = "") -> Run:
    """Write batches in order, each exactly once, from the query's checkpoint on."""
    name = name or query

    def run(actor: Actor) -> None:
        log, run_id = cast.log(actor), cast.world.new_id()
        state = load_topic(cast, log)
        while (batch := cast.done.get(query, 0)) < batches:
            owner = (name, query, batch)
            if cast.world.scene.loses:
                state = log.load(state)  # As a long-running program does.
                if not state.topic_id:
                    state = load_topic(cast, log)
            staged = stage(cast, log, state, owner)
            writer = append_commit.Writer(name, batch, query, run_id)
            attempt = cast.attempt("append")
            try:
                state = commit(cast, log, state, staged, writer, attempt)
            except ProducerFencedError:
                cast.idle(60)  # A query that was fenced is not started again at once.
                raise
            if attempt.write_id in state.writes:
                cast.acknowledged.add(owner)
            cast.done[query] = max(cast.done.get(query, 0), batch + 1)
            # Only from a state whose last commit is this writer's own, and so durable.
            if state.writes.get(attempt.write_id) == state.version and cast.chance(0.4):
                checkpoint_writer.write_checkpoint(log, state)

    return run


def batch_writer(cast: Cast, name: str, batches: int) -> Run:
    """Write batches without a name; a failed batch is not written again."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        for batch in range(batches):
            state = load_topic(cast, log)
            owner = (name, "", batch)
            staged = stage(cast, log, state, owner)
            commit(cast, log, state, staged, None, cast.attempt("append"))
            cast.acknowledged.add(owner)

    return run


def load_topic(cast: Cast, log: CommitLog) -> TopicState:
    """Load the topic; wait until it exists."""
    while not (state := log.load()).topic_id:
        cast.idle(20)
    return state


def stage(
    cast: Cast, log: CommitLog, state: TopicState, owner: Batch
) -> append_commit.StagedSegments:
    """Write a file to each partition, as tasks do."""
    staged, (_, query, batch) = [], owner
    for partition in range(state.partitions):
        records = [
            (query or owner[0], batch, partition, n) for n in range(1 + (batch + partition) % 3)
        ]
        entry = cast.write(log, state, partition, state.log_end[partition], records, "append")
        cast.batches[entry["file"]] = owner
        staged.append(entry)
    return append_commit.StagedSegments(state.topic_id, state.version, staged, state.partitions)


def commit(
    cast: Cast,
    log: CommitLog,
    state: TopicState,
    staged: append_commit.StagedSegments,
    writer: append_commit.Writer | None,
    attempt: CommitInfo,
) -> TopicState:
    """Commit as Spark's sink does: abort after an error."""
    try:
        state = log.commit(state, append_commit.append(staged, writer), attempt)
        if writer is not None and cast.chance(cast.world.chances.fault / 2):
            raise StoreDownError("it succeeded, but Spark got no answer")
    except KlogError:
        abort(cast, log, staged)
        raise
    return state


def abort(cast: Cast, log: CommitLog, staged: append_commit.StagedSegments) -> None:
    """Do nothing: the staged files may have been committed."""
