"""Run one seed, and look at what is there when all is quiet.

What must hold: the state that a fresh reader loads is that of the whole history, cleaned or not;
the segments tile the log and their files are there; of each acknowledged batch there is one copy,
of each other at most one; a named writer's batches are in order; no offset ever changed its record.
"""

from __future__ import annotations

from collections import Counter

from klog.connector.log import commit as commits
from klog.connector.log.paths import commit_version
from klog.connector.log.state import State, fold
from klog.connector.log.topic_log import TopicLog
from klog.errors import KlogError
from tests.simulation.actors import PARTITIONS, TOPIC, Cast, Record, tiling
from tests.simulation.world import CALM, Actor, FoundError, World

STEPS = 2000


def run(seed: int, steps: int = STEPS) -> World:
    """Run a seed to its end; `FoundError` says what was seen that must never be."""
    world = World(seed)
    cast = Cast(world)
    cast.create()
    for name, batches in (("q1", 12), ("q2", 12), ("q3", 10)):
        world.add(name, cast.stream(name, batches))
    world.add("b", cast.batch_writer("b", 8), restarts=False)
    for name, work in (
        ("merge", cast.merger()),
        ("merge too", cast.merger()),
        ("clean", cast.log_cleaner()),
        ("vacuum", cast.vacuum()),
        ("retain", cast.retention()),
    ):
        world.add(name, work)
    for name in ("r1", "r2"):
        world.add(name, cast.reader(name), restarts=False)
    try:
        for _ in range(steps):
            world.step()
        world.chances = CALM
        world.stop()
        check(cast, cast.log(Actor("checker", lambda actor: None, 0, False)))
    except KlogError as exc:
        raise FoundError(f"{type(exc).__name__}: {exc}") from exc
    finally:
        world.stop()
    return world


def history(world: World) -> list[commits.Commit]:
    """Give every commit that counts: the first creation of each number, cleaned ones too."""
    first: dict[int, bytes] = {}
    for path, data in world.created:
        version = commit_version(path.rsplit("/", 1)[-1])
        if "/log/" in path and version is not None and version == len(first):
            first[version] = data
    return [commits.decode(data, TOPIC, version) for version, data in first.items()]


def check(cast: Cast, log: TopicLog) -> None:
    """Compare what a fresh reader sees with the whole history and with what writers were told."""
    state, past = log.load(), history(cast.world)
    _same(state, fold(State(), past))
    _check_batches(cast, past)
    _check_order(cast, past)
    _check_runs(past)
    _check_records(cast, log, state)


def _check_batches(cast: Cast, past: list[commits.Commit]) -> None:
    written = Counter(owner for commit in past for owner in _batch_of(cast, commit))
    if lost := cast.acknowledged - set(written):
        raise FoundError(f"acknowledged and lost: {sorted(lost)}")
    if double := [owner for owner, count in written.items() if count > 1]:
        raise FoundError(f"written twice: {sorted(double)}")


def _check_order(cast: Cast, past: list[commits.Commit]) -> None:
    order: dict[str, int] = {}
    for commit in past:
        for name, batch in _batch_of(cast, commit):
            if commit.actions.progress is not None and batch < order.get(name, -1):
                raise FoundError(f"batch {batch} of {name} came behind batch {order[name]}")
            order[name] = batch


def _check_runs(past: list[commits.Commit]) -> None:
    """A run behind which another has written writes no more."""
    runs: dict[str, list[str]] = {}
    for commit in past:
        if (progress := commit.actions.progress) is not None:
            earlier = runs.setdefault(progress.name, [""])
            if progress.run_id in earlier[:-1]:
                raise FoundError(f"run {progress.run_id} wrote behind run {earlier[-1]}")
            if progress.run_id != earlier[-1]:
                earlier.append(progress.run_id)


def _check_records(cast: Cast, log: TopicLog, state: State) -> None:
    copies: Counter[Record] = Counter()
    for partition in range(PARTITIONS):
        for row in tiling(state, partition):
            if log.paths.data(row["file"]) not in cast.world.files:
                raise FoundError(f"live file {row['file']} is gone")
            copies.update(cast.records(log, row))
    if double := [record for record, count in copies.items() if count > 1]:
        raise FoundError(f"records twice: {double}")


def _batch_of(cast: Cast, commit: commits.Commit) -> set[tuple[str, int]]:
    """Tell whose batch an append is."""
    if commit.operation != "append":
        return set()
    return {cast.batches[entry["file"]] for entry in commit.actions.add}


def _same(state: State, whole: State) -> None:
    for name in ("version", "topic_id", "log_start", "log_end", "progress", "horizon", "config"):
        if getattr(state, name) != getattr(whole, name):
            raise FoundError(
                f"{name} is {getattr(state, name)}, by the history {getattr(whole, name)}"
            )
    rows = [sorted(one.segments.to_pylist(), key=_file) for one in (state, whole)]
    if rows[0] != rows[1]:
        raise FoundError("the live segments are not those of the history")


def _file(row: dict[str, object]) -> str:
    return str(row["file"])
