"""A soak: its producers, consumers and jobs, their faults, and its end.

The rule: the seed decides the lane, time and kind of each fault; the effect depends on the timing
of the machine. A life is killed (SIGKILL) and the next one starts. A producer may also be stopped,
while a second life starts under its name, and resume at the same time: a zombie. At the end there
are no more faults, producers end, and consumers must reach the end of the log.
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
    Process,
    StartProducer,
    Target,
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
"""The mean time of a life until a fault."""
_ZOMBIE_SHARE = 0.3
_ZOMBIE_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class SoakResult:
    """The tally of a soak, and the number of its faults."""

    tally: Tally
    seed: int
    kills: int
    zombies: int
    lives: int
    gave_up: int
    """Lives that ended by themselves, which is an error: their events and .err files say why."""
    commits: int

    def __str__(self) -> str:
        """Return the result as JSON."""
        return json.dumps(asdict(self))


def soak(
    folder: Path,
    seconds: float,
    seed: int,
    producers: Sequence[StartProducer] = (klog_producer,) * 3,
    consumers: int = 2,
    throughput: int = 400,
) -> SoakResult:
    """Run a soak in a new folder, which keeps the root and all events.

    `producers` has a kind for each lane; `throughput` is that of one, in messages a second.
    """
    target = Target(str(folder / "root"), TOPIC, throughput)
    open_log(target.root, {}).create_topic(TOPIC, PARTITIONS)
    scene = _Scene(folder, target, random.Random(seed), producers, consumers)
    try:
        scene.play(seconds)
        scene.end()
    finally:
        scene.kill_all()
    return scene.account(seed)


@dataclass(slots=True)
class _Zombie:
    """A stopped life, and the times at which it resumes and is killed."""

    life: Process
    goes_on: float
    dies: float
    is_stopped: bool = True


@dataclass(slots=True)
class _Scene:
    folder: Path
    target: Target
    chance: random.Random
    kinds: Sequence[StartProducer]
    consumer_count: int
    producers: list[Lane] = field(default_factory=list)
    consumers: list[Lane] = field(default_factory=list)
    jobs: list[Lane] = field(default_factory=list)
    zombies: list[_Zombie] = field(default_factory=list)
    positions: dict[str, dict[int, int]] = field(default_factory=dict)
    kills: int = 0
    zombie_count: int = 0
    gave_up: int = 0

    def play(self, seconds: float) -> None:
        """Run all lanes with faults for a number of seconds."""
        events = self.folder / "events"
        events.mkdir()
        self.producers = [
            Lane(f"producer-{number}", events, partial(kind, self.target, number))
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
        """End all lanes without faults, consumers at the end of the log."""
        for lane in self.jobs:
            lane.kill()
        for zombie in self.zombies:
            zombie.life.kill()
            zombie.life.join()
        for lane in self.producers:
            if not lane.is_alive:
                lane.begin()
            lane.end(END_SECONDS)
        described = open_log(self.target.root, {}).describe(TOPIC)
        ends = {
            partition.partition: partition.log_end
            for partition in described.partitions
            if partition.log_end
        }
        deadline = time.monotonic() + END_SECONDS
        for lane in self.consumers:
            while positions_of(lane.paths[-1], self.positions[lane.name]) != ends:
                assert time.monotonic() < deadline, f"{lane.name} does not come to {ends}"
                if not lane.is_alive:
                    self._hit(lane)
                time.sleep(0.2)
            lane.end(END_SECONDS)

    def kill_all(self) -> None:
        """Kill all processes."""
        for lane in (*self.producers, *self.consumers, *self.jobs):
            lane.kill()
        for zombie in self.zombies:
            zombie.life.kill()
            zombie.life.join()

    def account(self, seed: int) -> SoakResult:
        """Read the whole topic, and return the result."""
        log = open_log(self.target.root, {})
        scanned: pa.Table = log.scan(TOPIC, columns=["partition", "offset", "value"]).read_all()
        counts = tally(
            scanned,
            [path for lane in self.producers for path in lane.paths],
            [lane.paths for lane in self.consumers],
        )
        lives = sum(len(lane.paths) for lane in (*self.producers, *self.consumers, *self.jobs))
        return SoakResult(
            tally=counts,
            seed=seed,
            kills=self.kills,
            zombies=self.zombie_count,
            lives=lives,
            gave_up=self.gave_up,
            commits=log.describe(TOPIC).version,
        )

    def _next(self) -> float:
        return time.monotonic() + self.chance.expovariate(1 / _LIFE_SECONDS)

    def _hit(self, lane: Lane) -> None:
        """Kill a life, or stop it as a zombie, and start the next."""
        life = lane.life
        assert life is not None
        assert life.pid is not None
        if lane in self.producers and lane.is_alive and self.chance.random() < _ZOMBIE_SHARE:
            os.kill(life.pid, signal.SIGSTOP)
            begin = time.monotonic() + self.chance.uniform(0, _ZOMBIE_SECONDS)
            self.zombies.append(_Zombie(life, begin, begin + self.chance.uniform(0, _LIFE_SECONDS)))
            self.zombie_count += 1
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
        return forked(maintain, self.target.root, self.target.topic, events=events)

    def _consuming(self, lane: Lane, events: Path) -> Process:
        """Start a consumer at the positions that its earlier lives reached."""
        begin = self.positions.setdefault(lane.name, {})
        if len(lane.paths) > 1:
            begin = positions_of(lane.paths[-2], begin)
        self.positions[lane.name] = begin
        return klog_consumer(self.target, begin, events)
