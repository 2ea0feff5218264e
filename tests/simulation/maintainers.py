"""Actors that maintain a topic: compaction, merge, retention and others, in loops.

The rule: a job loads, works, commits or gives up, and sleeps. It may be a zombie that wakes up long
after another has taken over.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log import (
    commit_builders,
    commit_expiration,
    rewrite_commit,
    segment_entries,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError
from tests.simulation.cast import Cast, Record, key_of
from tests.simulation.scene import GRACE_MS
from tests.simulation.world import Actor

Run = Callable[[Actor], None]


def merger(cast: Cast) -> Run:
    """Merge three consecutive segments."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(25)
            state = log.load()
            if not state.topic_id:
                continue
            rows = cast.rows(state, cast.world.random.randrange(state.partitions))
            if len(rows) >= 3:
                first = cast.world.random.randrange(len(rows) - 2)
                merge(cast, log, state, rows[first : first + 3])

    return run


def merge(
    cast: Cast, log: CommitLog, state: TopicState, rows: list[segment_entries.SegmentEntry]
) -> None:
    """Write the records of consecutive segments to one segment, and commit the replacement."""
    try:
        parts = [cast.read(log, row) for row in rows]
    except FileNotFoundError:
        return
    partition, records = rows[0]["partition"], list[Record | None]()
    for row, part in zip(rows, parts, strict=True):
        hole = row["base_offset"] - rows[0]["base_offset"] - len(records)
        records += [*[None] * hole, *part]
    output = cast.write(log, state, partition, rows[0]["base_offset"], records, "merge")
    inputs = [row["file"] for row in rows]
    build = rewrite_commit.replace_segments(
        state.topic_id, state.version, inputs, [output], {partition: 0}
    )
    try:
        log.commit(state, build, cast.attempt("merge"))
    except CommitConflictError:
        return


def compactor(cast: Cast) -> Run:
    """Keep the last record of each key of a partition; rewrite only segments that lose records."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(40)
            state = log.load()
            if not state.topic_id:
                continue
            compact(cast, log, state, cast.world.random.randrange(state.partitions))

    return run


def compact(cast: Cast, log: CommitLog, state: TopicState, partition: int) -> None:
    """Rewrite a partition's segments without superseded records, and commit the replacement."""
    rows = cast.rows(state, partition)
    try:
        records_of_rows = [cast.read(log, row) for row in rows]
    except FileNotFoundError:
        return
    last = {
        key_of(record): (number, at)
        for number, records in enumerate(records_of_rows)
        for at, record in enumerate(records)
        if record is not None
    }
    kept = set(last.values())
    inputs, outputs = [], []
    for number, (row, records) in enumerate(zip(rows, records_of_rows, strict=True)):
        left = [record if (number, at) in kept else None for at, record in enumerate(records)]
        if left != list(records):
            inputs.append(row["file"])
            outputs.append(cast.write(log, state, partition, row["base_offset"], left, "compact"))
    build = rewrite_commit.replace_segments(
        state.topic_id, state.version, inputs, outputs, {partition: state.log_end[partition]}
    )
    try:
        log.commit(state, build, cast.attempt("compact"))
    except CommitConflictError:
        return


def retention(cast: Cast) -> Run:
    """Delete the records of the oldest segment if there are many."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(80)
            state = log.load()
            if not state.topic_id:
                continue
            partition = cast.world.random.randrange(state.partitions)
            rows = cast.rows(state, partition)
            if len(rows) >= 5:
                start = rows[0]["next_offset"] - cast.world.random.randrange(2)
                build = commit_builders.delete_records(
                    state.topic_id, {partition: start}, state.version
                )
                log.commit(state, build, cast.attempt("retain"))

    return run


def log_expirer(cast: Cast) -> Run:
    """Expire commits that the writers' checkpoints cover."""
    scene = cast.world.scene

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(scene.expiration_pause)
            commit_expiration.expire_log(log, scene.retention_ms)

    return run


def vacuum(cast: Cast) -> Run:
    """Delete the topic's orphan files."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(40)
            topic_vacuum.vacuum(log, cast.attempt("vacuum"), GRACE_MS)

    return run
