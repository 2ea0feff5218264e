"""Actors that read the whole log again and again, and must never see a contradiction.

The rule: a plan's age counts from before its state was loaded. Inside the grace, or under a
snapshot lease that was taken inside it and has not ended, no file of a plan may be gone. If a file
is gone later, the reader loads again, unless the file is live.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log import segment_entries, snapshot_leases
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from tests.simulation.cast import Cast
from tests.simulation.scene import GRACE_MS, STEP_MS
from tests.simulation.world import Actor, ViolationError

Run = Callable[[Actor], None]
GRACE_STEPS = GRACE_MS // STEP_MS - 2
"""The grace in steps, less what clocks may be off."""


def reader(cast: Cast, name: str) -> Run:
    """Read everything, sometimes from an earlier state and sometimes from a fresh load."""

    def run(actor: Actor) -> None:
        log, ends, state = cast.log(actor), dict[tuple[str, int], int](), None
        while True:
            began = cast.world.now
            state = log.load(state if cast.world.random.random() < 0.5 else None)
            cast.kept[name] = state
            for partition, end in enumerate(state.log_end):
                before = ends.setdefault((state.topic_id, partition), end)
                if end < before and not cast.world.may_go_back:
                    raise ViolationError(f"{name}: the log end of {partition} went back")
                ends[state.topic_id, partition] = end
            cast.idle(cast.world.random.choice([1, 1, 30, 60]))
            read_all(cast, log, state, name, began + GRACE_STEPS)

    return run


def slow_reader(cast: Cast, name: str) -> Run:
    """Read one plan for longer than the grace, with a snapshot lease."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            began = cast.world.now
            state, lease_id = log.load(), cast.world.new_id()
            lease_steps = 6 * GRACE_MS // STEP_MS
            until = cast.world.now + lease_steps - 2
            snapshot_leases.take_lease(log, lease_id, state.version, lease_steps * STEP_MS)
            if cast.world.now - began < GRACE_STEPS:
                while cast.world.now < until:
                    read_all(cast, log, state, name, until)
                    cast.idle(60)
            snapshot_leases.release_lease(log, lease_id)

    return run


def _may_be_removed_by_lost_commits(cast: Cast) -> bool:
    """Return whether a commit that is lost at the end may have removed files that are gone."""
    return bool(cast.world.lost) and cast.world.may_go_back


def _check_not_live(log: CommitLog, file: str, name: str) -> None:
    if file in log.load().segments["file"].to_pylist():
        raise ViolationError(f"{name}: live file {file} is gone")


def read_all(cast: Cast, log: CommitLog, state: TopicState, name: str, until: int) -> None:
    """Read every segment of a plan, whose files must exist until the step `until`."""
    for partition in range(state.partitions):
        for row in rows_in_order(cast, state, partition):
            try:
                records = cast.read(log, row)
            except FileNotFoundError:
                if log.paths.data(row["file"]) in cast.world.lost:
                    continue
                if not _may_be_removed_by_lost_commits(cast):
                    if cast.world.now < until and not cast.world.scene.clocks_differ:
                        raise ViolationError(
                            f"{name}: {row['file']} of an open plan is gone"
                        ) from None
                    _check_not_live(log, row["file"], name)
                return
            for offset, record in enumerate(records, row["base_offset"]):
                position = (state.topic_id, partition, offset)
                if record is None:
                    continue
                before = cast.seen.setdefault(position, record)
                if before != record and not cast.world.may_go_back:
                    raise ViolationError(f"{name}: {position} was {before}, is {record}")


def rows_in_order(
    cast: Cast, state: TopicState, partition: int
) -> list[segment_entries.SegmentEntry]:
    """Return a partition's segments in order; with holes they tile it from its start to its end."""
    rows = cast.rows(state, partition)
    start, end = state.log_start[partition], state.log_end[partition]
    at = rows[0]["base_offset"] if rows else _after_holes(state, partition, start)
    if at > _after_holes(state, partition, start):
        raise ViolationError(f"partition {partition} begins at {start}, its first segment at {at}")
    for row in rows:
        if row["base_offset"] not in (at, _after_holes(state, partition, at)):
            raise ViolationError(f"partition {partition}: {row['file']} begins at {at}")
        at = row["next_offset"]
    if end not in (at, _after_holes(state, partition, at)):
        raise ViolationError(f"partition {partition} ends at {end}, its last segment at {at}")
    return rows


def _after_holes(state: TopicState, partition: int, offset: int) -> int:
    """Return the first offset from one on that is not in a hole."""
    for hole in sorted(hole for hole in state.holes if hole.partition == partition):
        if hole.base_offset <= offset < hole.next_offset:
            offset = hole.next_offset
    return offset
