"""Run one seed to its end, stop all faults, and check the invariants.

The rule: a seed is a number that determines everything: the scene, the order of turns, the faults.
"""

from __future__ import annotations

import pytest

from klog.connector.commit_log import checkpoint_parts, commit_sidecar
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.errors import KlogError
from tests.simulation import admins, maintainers, readers, writers
from tests.simulation.cast import ROOT, TOPIC, Cast
from tests.simulation.checks import check, check_deletions
from tests.simulation.losses import Losses
from tests.simulation.past import check_past, past_reader
from tests.simulation.remembered import memoizing
from tests.simulation.world import Actor, ViolationError, World

STEPS = 1200
CALM_STEPS = 3000
STREAMS, BATCHES = ("q1", "q2"), 10


def run(seed: int, steps: int = STEPS) -> World:
    """Run a seed; raise `ViolationError` if it violates an invariant."""
    with memoizing(seed):
        return _run(seed, steps)


def _run(seed: int, steps: int) -> World:
    world = World(seed)
    with pytest.MonkeyPatch.context() as patch:
        if world.scene.in_parts:
            patch.setattr(commit_sidecar, "MAX_JSON_BYTES", 1500)
            patch.setattr(checkpoint_parts, "PART_ROWS", 3)
        _play(world, steps)
    return world


def _play(world: World, steps: int) -> None:
    cast = Cast(world)
    losses = Losses(cast, steps) if world.scene.loses else None
    if losses is not None:
        world.disk.put(TopicPaths(ROOT, TOPIC).description, b"{}")
        cast.wrap_log = losses.wrap_log
    admins.create(cast)
    try:
        _begin(cast)
        for _ in range(steps):
            world.step()
            if losses is not None:
                losses.step()
        world.calm_down()
        if losses is not None:
            losses.check_damaged()
            if not losses.put_back():
                return
        _finish_streams(cast)
        log = cast.log(Actor("checker", lambda actor: None, 0, restarts=False))
        check(cast, log)
        check_past(cast, log)
        check_deletions(cast, log)
    except KlogError as exc:
        raise ViolationError(f"{type(exc).__name__}: {exc}") from exc
    finally:
        world.stop()


def _begin(cast: Cast) -> None:
    """Start all actors of the scene."""
    world, scene = cast.world, cast.world.scene
    world.on_loss += [cast.seen.clear, cast.kept.clear]
    jobs_of = {
        "merge": (scene.mergers, maintainers.merger),
        "compact": (scene.compactors, maintainers.compactor),
        "expire": (scene.expirers, maintainers.log_expirer),
        "vacuum": (scene.vacuums, maintainers.vacuum),
        "retain": (scene.retentions, maintainers.retention),
        "admin": (scene.admins, admins.admin),
        "restore": (scene.restores, admins.restorer),
        "recreate": (scene.is_recreated, admins.recreator),
        "undelete": (scene.is_recreated and scene.is_undeleted, admins.undeleter),
    }
    _begin_streams(cast)
    if scene.two_queries:
        for query in ("shared 1", "shared 2"):
            world.add(query, writers.stream(cast, query, BATCHES, "shared"))
    for _ in range(scene.batch_writers):
        world.add("b", writers.batch_writer(cast, "b", BATCHES), restarts=False)
    for name, (count, job) in jobs_of.items():
        for _ in range(count):
            world.add(name, job(cast))
    for name in ("r1", "r2")[: scene.readers]:
        world.add(name, readers.reader(cast, name), survives=True)
    if scene.has_past_reader:
        world.add("past", past_reader(cast, "past"), survives=True)
    if scene.has_leases:
        world.add("slow", readers.slow_reader(cast, "slow"), survives=True)


def _begin_streams(cast: Cast) -> None:
    for name in STREAMS[: cast.world.scene.streams]:
        cast.world.add(name, writers.stream(cast, name, BATCHES))


def _finish_streams(cast: Cast) -> None:
    """Run the streams to their end without faults."""
    log = cast.log(Actor("finisher", lambda actor: None, 0, restarts=False))
    if not log.load().topic_id:
        admins.create(cast)
    _begin_streams(cast)
    for _ in range(CALM_STEPS):
        cast.world.step()
        if not cast.world.actors:
            return
    raise ViolationError(f"streams are stuck without faults at {cast.done}")
