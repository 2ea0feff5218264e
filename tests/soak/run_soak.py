"""A soak: who takes part, what befalls them, and how it ends.

The rule: the seed decides who is hit when and by what, the machine what that meets. A life is
killed (SIGKILL) and begun anew; a producer may also be stopped, have a second life begun under its
name, and go on beside it: a zombie. At the end nobody is hit any more, producers are asked to end,
and consumers have to come to the end of the log.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from klog.connector.embedded import open_log
from tests.soak.lanes import (
    Lane,
    Place,
    Process,
    StartProducer,
    forked,
    klog_consumer,
    klog_producer,
    positions_of,
)
from tests.soak.soak_jobs import maintain
from tests.soak.tally import Tally, tally

TOPIC = "soak"
PARTITIONS = 3
END_SECONDS = 120
_STEP_SECONDS = 0.05
_LIFE_SECONDS = 2.0
"""The mean of a life, until something befalls it."""
_ZOMBIE_SHARE = 0.3
_ZOMBIE_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Soaked:
    """What became of it: the tally, and how much befell whom."""

    tally: Tally
    seed: int
    kills: int
    zombies: int
    lives: int
    gave_up: int
    """Lives that ended by themselves, which none has to: their events and .err files say why."""
    commits: int

    def __str__(self) -> str:
        """Give it as JSON."""
        return json.dumps(asdict(self))


def soak(
    folder: Path,
    seconds: float,
    seed: int,
    producers: Sequence[StartProducer] = (klog_producer,) * 3,
    consumers: int = 2,
    throughput: int = 400,
) -> Soaked:
    """Run it in a folder, which is to be new and keeps the root and all events.

    `producers` has a kind for each lane; `throughput` is of one, in messages a second.
    """
    place = Place(str(folder / "root"), TOPIC, throughput)
    open_log(place.root, {}).create_topic(TOPIC, PARTITIONS)
    scene = _Scene(folder, place, random.Random(seed), producers, consumers)
    try:
        scene.play(seconds)
        scene.end()
    finally:
        scene.kill_all()
    return scene.account(seed)


@dataclass(slots=True)
class _Zombie:
    """A stopped life, and when it goes on, and when it is killed at last."""

    life: Process
    goes_on: float
    dies: float
    is_stopped: bool = True


@dataclass(slots=True)
class _Scene:
    folder: Path
    place: Place
    chance: random.Random
    kinds: Sequence[StartProducer]
    consumer_count: int
    producers: list[Lane] = field(default_factory=list)
    consumers: list[Lane] = field(default_factory=list)
    jobs: list[Lane] = field(default_factory=list)
    zombies: list[_Zombie] = field(default_factory=list)
    positions: dict[str, dict[int, int]] = field(default_factory=dict)
    kills: int = 0
    zombies_made: int = 0
    gave_up: int = 0

    def play(self, seconds: float) -> None:
        """Let it happen for so long."""
        events = self.folder / "events"
        events.mkdir()
        self.producers = [
            Lane(f"producer-{number}", events, partial(kind, self.place, number))
            for number, kind in enumerate(self.kinds)
        ]
        for number in range(self.consumer_count):
            lane = Lane(f"consumer-{number}", events)
            lane.start = partial(self._consuming, lane)
            self.consumers.append(lane)
        self.jobs = [Lane("job", events, self._maintaining)]
        lanes = [*self.producers, *self.consumers, *self.jobs]
        for lane in lanes:
            lane.begin()
        due = {lane.name: self._next() for lane in lanes}
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            time.sleep(_STEP_SECONDS)
            self._move_zombies()
            for lane in lanes:
                if time.monotonic() >= due[lane.name] or not lane.is_alive:
                    self._hit(lane)
                    due[lane.name] = self._next()

    def end(self) -> None:
        """Bring everybody to an end in peace; consumers at the end of the log."""
        for lane in self.jobs:
            lane.kill()
        for zombie in self.zombies:
            zombie.life.kill()
            zombie.life.join()
        for lane in self.producers:
            if not lane.is_alive:
                lane.begin()
            lane.end(END_SECONDS)
        described = open_log(self.place.root, {}).describe(TOPIC)
        ends = {one.partition: one.log_end for one in described.partitions if one.log_end}
        deadline = time.monotonic() + END_SECONDS
        for lane in self.consumers:
            while positions_of(lane.paths[-1], self.positions[lane.name]) != ends:
                assert time.monotonic() < deadline, f"{lane.name} does not come to {ends}"
                if not lane.is_alive:
                    self._hit(lane)
                time.sleep(0.2)
            lane.end(END_SECONDS)

    def kill_all(self) -> None:
        """Leave no process behind."""
        for lane in (*self.producers, *self.consumers, *self.jobs):
            lane.kill()
        for zombie in self.zombies:
            zombie.life.kill()
            zombie.life.join()

    def account(self, seed: int) -> Soaked:
        """Read the whole topic, and count."""
        log = open_log(self.place.root, {})
        scanned: pa.Table = log.scan(TOPIC, columns=["partition", "offset", "value"]).read_all()
        made = tally(
            scanned,
            [path for lane in self.producers for path in lane.paths],
            [lane.paths for lane in self.consumers],
        )
        lives = sum(len(lane.paths) for lane in (*self.producers, *self.consumers, *self.jobs))
        return Soaked(
            tally=made,
            seed=seed,
            kills=self.kills,
            zombies=self.zombies_made,
            lives=lives,
            gave_up=self.gave_up,
            commits=log.describe(TOPIC).version,
        )

    def _next(self) -> float:
        return time.monotonic() + self.chance.expovariate(1 / _LIFE_SECONDS)

    def _hit(self, lane: Lane) -> None:
        """Kill a life, or leave it behind as a zombie, and begin the next."""
        life = lane.life
        assert life is not None
        assert life.pid is not None
        if lane in self.producers and lane.is_alive and self.chance.random() < _ZOMBIE_SHARE:
            os.kill(life.pid, signal.SIGSTOP)
            begin = time.monotonic() + self.chance.uniform(0, _ZOMBIE_SECONDS)
            self.zombies.append(_Zombie(life, begin, begin + self.chance.uniform(0, _LIFE_SECONDS)))
            self.zombies_made += 1
        else:
            self.kills += lane.is_alive
            self.gave_up += not lane.is_alive
            lane.kill()
        lane.begin()

    def _move_zombies(self) -> None:
        now = time.monotonic()
        for zombie in self.zombies:
            if zombie.is_stopped and now >= zombie.goes_on:
                assert zombie.life.pid is not None
                os.kill(zombie.life.pid, signal.SIGCONT)
                zombie.is_stopped = False
            if now >= zombie.dies:
                zombie.life.kill()
                zombie.life.join()
        self.zombies = [zombie for zombie in self.zombies if zombie.life.is_alive()]

    def _maintaining(self, events: Path) -> Process:
        return forked(maintain, self.place.root, self.place.topic, events=events)

    def _consuming(self, lane: Lane, events: Path) -> Process:
        """Begin where the lives before have come to."""
        begin = self.positions.setdefault(lane.name, {})
        if len(lane.paths) > 1:
            begin = positions_of(lane.paths[-2], begin)
        self.positions[lane.name] = begin
        return klog_consumer(self.place, begin, events)
