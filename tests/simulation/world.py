"""A world with a seed: one store and many actors, with faults at every call of the store.

The rule: actors run klog's own code. Each of their calls of the store switches to the world, which
chooses by its seed the next call and its outcome: it succeeds, it fails without effect, it takes
effect and its answer is lost, it takes effect long after the caller gave up, the caller sleeps
first, or the caller crashes before or after it. A crashed actor starts again; sometimes the old one
lives on as a zombie. A power loss ends all actors at once. The same seed gives the same run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from klog.connector.store.writable_store import PutResult
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    LostCommitError,
    ProducerFencedError,
)
from tests.simulation.on_store import version_of
from tests.simulation.scene import CALM, START_MS, STEP_MS, Scene, draw
from tests.simulation.simulated_disk import Disk

Call = Callable[[], Any]
LAG_STEPS, LAG_CHANCE = 30, 0.2
"""A read may miss a file for this many steps after its creation, with this probability."""


class StoreDownError(KlogError):
    """The store did not answer a call that is not a put-if-absent."""


class ViolationError(AssertionError):
    """An invariant does not hold."""


EXPECTED = (StoreDownError, CommitConflictError, CommitStateUnknownError, ProducerFencedError)
"""Errors that klog may raise here; another error of klog's means that the log is broken."""


@dataclass(eq=False)
class Actor:
    """An actor that runs klog's code; `skew_ms` is how far its clock is off."""

    name: str
    run: Callable[[Actor], None]
    skew_ms: int
    restarts: bool
    """Whether the actor starts again after a crash or a failure."""
    survives: bool = False
    """Never crashes by itself: a reader, which leaves nothing incomplete."""
    wakes_at: int = 0
    thread: Any = None
    pending: tuple[str, Call] | None = None


@dataclass
class World:
    """All actors and the store that they share."""

    seed: int
    now: int = 0
    actors: list[Actor] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    on_loss: list[Callable[[], None]] = field(default_factory=list)
    """Called when a power loss has undone commits."""
    lost: dict[str, bytes] = field(default_factory=dict)
    """Files that vanished at rest: see `losses.py`."""
    may_go_back: bool = False
    """The lost files include the last commits, and writers may continue from earlier ones."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.scene: Scene = draw(self.random, self.seed)
        self.chances = self.scene.chances
        self.disk = Disk(self.scene.is_disk)
        self._late: list[tuple[int, Call]] = []
        self._ids = 0
        self._lagging = random.Random(f"lagging reads of {self.seed}")
        self._young: dict[str, int] = {}

    def new_id(self) -> str:
        """Return a new unique id."""
        self._ids += 1
        return f"{self._ids:08x}"

    def note_created(self, path: str) -> None:
        """Record when a file was created: while it is young, a read may miss it."""
        self._young[path] = self.now

    def is_missed(self, path: str) -> bool:
        """Draw whether a read misses a young file: at most once for each file."""
        if not self.scene.has_stale_reads or self.chances is CALM:
            return False
        if self.now - self._young.get(path, -LAG_STEPS) >= LAG_STEPS:
            return False
        if self._lagging.random() >= LAG_CHANCE:
            return False
        del self._young[path]
        self.events["fault absent"] += 1
        return True

    def coming_puts(self) -> set[str]:
        """Return the files that an actor or a late call is about to create."""
        pending = [actor.pending for actor in self.actors if actor.pending is not None]
        calls = [call for kind, call in pending if kind == "create"]
        calls += [call for _, call in self._late]
        return {call.args[0] for call in calls if isinstance(call, partial)}

    def clock(self, actor: Actor) -> int:
        """Return the time by an actor's clock."""
        return START_MS + self.now * STEP_MS + actor.skew_ms

    def add(
        self, name: str, run: Callable[[Actor], None], restarts: bool = True, survives: bool = False
    ) -> None:
        """Start an actor."""
        skew_ms = self.random.choice(self.scene.skews_ms)
        self._begin(Actor(name, run, skew_ms, restarts, survives), 0)

    def step(self) -> None:
        """Run one call, or one fault."""
        self.now += 1
        if self._late:
            self._land_late_calls(self.now)
        chances = self.chances
        if chances.power_loss and self.random.random() < chances.power_loss:
            self._lose_power()
        awake = [actor for actor in self.actors if actor.wakes_at <= self.now]
        if not awake:
            return
        actor = self._next(awake)
        chance = self.random.random()
        if chance < chances.pause:
            actor.wakes_at = self.now + self.random.choice([5, 20, 60, 200])
            self.events["pause"] += 1
            return
        chance -= chances.pause
        if chance < chances.clock:
            actor.skew_ms = self.random.choice(self.scene.skews_ms)
            self.events["clock set"] += 1
        chance -= chances.clock
        assert actor.pending is not None
        kind, call = actor.pending
        if 0 <= chance < chances.crash and actor.restarts and not actor.survives:
            self._crash(actor, call)
        elif kind != "clock" and chances.crash <= chance < chances.crash + chances.fault:
            self._fail(actor, kind, call)
        else:
            self._answer(actor, call)

    def _next(self, awake: list[Actor]) -> Actor:
        frequent = [actor for actor in awake if actor.name == self.scene.frequent_actor]
        return self.random.choice(frequent if frequent and self.random.random() < 0.5 else awake)

    def request(self, kind: str, call: Call, sleep: int = 0) -> Any:
        """Wait until the world makes this call; outside of actors, make it at once."""
        mine = self.current_actor()
        if mine is None:
            self.now += sleep
            return call()
        mine.pending = (kind, call)
        mine.wakes_at = self.now + sleep
        return mine.thread.parent.switch()

    def current_actor(self) -> Actor | None:
        """Return the actor whose code runs; None outside of actors."""
        return getattr(getcurrent(), "actor", None)

    def calm_down(self) -> None:
        """End all actors and all faults, and run the late calls."""
        self.chances = CALM
        self.stop()
        self._land_late_calls(None)

    def stop(self) -> None:
        """End all actors at their current call."""
        actors, self.actors = self.actors, []
        for actor in actors:
            actor.thread.throw(GreenletExit)

    def _begin(self, actor: Actor, delay: int) -> None:
        actor.thread = greenlet(lambda: actor.run(actor))
        actor.thread.actor = actor
        self.actors.append(actor)
        self._resume(actor, actor.thread.switch)
        actor.wakes_at = max(actor.wakes_at, self.now + delay)

    def _again(self, actor: Actor, delay: int) -> None:
        """Start an actor again, without its state."""
        again = Actor(actor.name, actor.run, actor.skew_ms, actor.restarts, actor.survives)
        self._begin(again, delay)

    def _resume(self, actor: Actor, switch: Callable[[], Any]) -> None:
        """Run an actor until its next call; after a failure it starts again, as Spark's jobs do."""
        actor.pending = None
        try:
            switch()
        except (KlogError, OSError) as exc:
            if (broken := self._unexpected(exc)) is not None:
                raise ViolationError(f"{actor.name}: {type(broken).__name__}: {broken}") from exc
            self.events[f"failed: {type(exc).__name__}"] += 1
            self.actors.remove(actor)
            if actor.restarts:
                self._again(actor, 10)
            return
        if actor.thread.dead and actor in self.actors:
            self.actors.remove(actor)

    def _unexpected(self, exc: BaseException | None) -> BaseException | None:
        """Return the error, or the cause of it, that neither a fault nor a loss explains."""
        while exc is not None:
            if self._reports_a_loss(exc):
                return None
            if not isinstance(exc, EXPECTED):
                return exc
            exc = exc.__cause__
        return None

    def _reports_a_loss(self, exc: BaseException) -> bool:
        """Whether an error names a file, and files were lost or commits undone.

        To a process that began from a commit which a power loss then undid, that commit looks lost.
        """
        if self.lost:
            return isinstance(exc, KlogError) and "/root/" in str(exc)
        undone = {version_of(path) for path in self.disk.undone}
        return isinstance(exc, LostCommitError) and any(
            f"shows that version {version} was made" in str(exc) for version in undone
        )

    def _end(self, actor: Actor) -> None:
        self.actors.remove(actor)
        actor.thread.throw(GreenletExit)

    def _crash(self, actor: Actor, call: Call) -> None:
        self.events["crash"] += 1
        delay, is_zombie = self.random.choice([1, 10, 40]), False
        if self.random.random() < 0.5:
            _quietly(call)
        else:
            is_zombie = self.random.random() < 0.5
        if is_zombie:
            self.events["zombie"] += 1
            actor.restarts = False
            actor.wakes_at = self.now + self.random.choice([10, 50, 150, 300])
        else:
            self._end(actor)
        self._begin(Actor(actor.name, actor.run, actor.skew_ms, restarts=True), delay)

    def _lose_power(self) -> None:
        self.events["power loss"] += 1
        actors = list(self.actors)
        self.stop()
        self._late = []
        if self.disk.lose_power(self.random):
            self.events["commit undone"] += 1
            for callback in self.on_loss:
                callback()
        for actor in actors:
            if actor.restarts:
                self._again(actor, self.random.choice([1, 10]))

    def _fail(self, actor: Actor, kind: str, call: Call) -> None:
        mode = self.random.choice(["before", "after", "after", "late"])
        if kind == "create" and self.scene.is_disk:
            mode = "before"  # A disk answers or does nothing; only its sync can fail.
        if mode == "late" and kind in ("create", "put", "delete"):
            self._late.append((self.now + self.random.choice([3, 30, 200]), call))
        elif mode != "before":
            _quietly(call)
        self.events[f"fault {mode}"] += 1
        if kind == "create":
            # A client that retries by itself finds its own file.
            there = mode == "after" and self.random.random() < 0.6
            self._resume(
                actor, lambda: actor.thread.switch(PutResult.EXISTS if there else PutResult.UNKNOWN)
            )
        else:
            self._resume(actor, lambda: actor.thread.throw(StoreDownError("no answer")))

    def _answer(self, actor: Actor, call: Call) -> None:
        try:
            result = call()
        except FileNotFoundError as exc:
            missing = exc
            self._resume(actor, lambda: actor.thread.throw(missing))
        else:
            self._resume(actor, lambda: actor.thread.switch(result))

    def _land_late_calls(self, until: int | None) -> None:
        late, self._late = self._late, []
        for time, call in late:
            if until is None or time <= until:
                _quietly(call)
            else:
                self._late.append((time, call))


def _quietly(call: Call) -> None:
    """Make a call whose caller does not get its result."""
    try:
        call()
    except FileNotFoundError:
        return
