"""Who keeps a topic in order: compaction, merge, retention and their kin, each over and over.

The rule: a job loads, does its work, commits it or gives it up, and sleeps. It may be a zombie that
wakes long after another took over.
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
from tests.simulation.cast import Cast, key_of
from tests.simulation.scene import GRACE_MS
from tests.simulation.world import Actor

Run = Callable[[Actor], None]


def merger(cast: Cast) -> Run:
    """Make one segment of three neighbours."""

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
    """Write the records of neighbours to one segment and commit it in their place."""
    try:
        records = [one for row in rows for one in cast.read(log, row)]
    except FileNotFoundError:
        return
    partition = rows[0]["partition"]
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
    """Keep the last record of each key of a partition, and leave the segments that lose none."""

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
    """Write what is left of a partition's segments, and commit all of it in their place."""
    rows = cast.rows(state, partition)
    try:
        found = [cast.read(log, row) for row in rows]
    except FileNotFoundError:
        return
    last = {
        key_of(record): (number, at)
        for number, records in enumerate(found)
        for at, record in enumerate(records)
        if record is not None
    }
    kept = set(last.values())
    inputs, outputs = [], []
    for number, (row, records) in enumerate(zip(rows, found, strict=True)):
        left = [one if (number, at) in kept else None for at, one in enumerate(records)]
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
    """Let the oldest segment go where there are many."""

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
                build = commit_builders.delete_records(state.topic_id, {partition: start})
                log.commit(state, build, cast.attempt("retain"))

    return run


def log_cleaner(cast: Cast) -> Run:
    """Delete commits behind the checkpoints that writers make."""
    scene = cast.world.scene

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(scene.cleaning_pause)
            commit_expiration.expire_log(log, scene.retention_ms)

    return run


def vacuum(cast: Cast) -> Run:
    """Delete the topic's garbage."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(40)
            topic_vacuum.vacuum(log, cast.attempt("vacuum"), GRACE_MS)

    return run
