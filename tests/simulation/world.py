"""A world with a seed: one store, many actors, and things go wrong at every call of the store.

The rule: actors run klog's own code. Each call that they make on the store hands over to the
world, which chooses by its seed whose is next and what becomes of it: it succeeds, it fails without
effect, it takes effect and its answer is lost, it takes effect long after its caller gave up, the
caller sleeps first, or the caller crashes before or after it. A crashed actor is begun anew;
sometimes the old one lives on as a zombie. The same seed gives the same run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry
from klog.errors import KlogError

TRIES = 4

Call = Callable[[], Any]


class StoreDownError(KlogError):
    """The store did not answer a call that is not a put-if-absent."""


class FoundError(AssertionError):
    """What must never be seen was seen."""


@dataclass(frozen=True)
class Chances:
    """How often things go wrong, a call."""

    fault: float = 0.06
    crash: float = 0.012
    pause: float = 0.02


CALM = Chances(0, 0, 0)


@dataclass
class Actor:
    """Somebody who runs klog's code; `skew_ms` is how far their clock is off."""

    name: str
    run: Callable[[Actor], None]
    skew_ms: int
    restarts: bool
    wakes_at: int = 0
    thread: Any = None
    pending: tuple[str, Call] | None = None


@dataclass
class World:
    """All actors and the one store that they share."""

    seed: int
    chances: Chances = field(default_factory=Chances)
    files: dict[str, bytes] = field(default_factory=dict)
    now: int = 0
    actors: list[Actor] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    created: list[tuple[str, bytes]] = field(default_factory=list)
    """Everything that was created, in order: what no cleaning takes away."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._late: list[tuple[int, Call]] = []
        self._ids = 0

    def new_id(self) -> str:
        """Give an id that no other call gets."""
        self._ids += 1
        return f"{self._ids:08x}"

    def add(self, name: str, run: Callable[[Actor], None], restarts: bool = True) -> None:
        """Let somebody begin."""
        skew_ms = self.random.choice([0, 0, 0, 500, -500, 86_400_000])
        self._begin(Actor(name, run, skew_ms, restarts), 0)

    def step(self) -> None:
        """Let one call happen, or one thing go wrong."""
        self.now += 1
        self._land_late_calls()
        awake = [actor for actor in self.actors if actor.wakes_at <= self.now]
        if not awake:
            return
        actor = self.random.choice(awake)
        if self.random.random() < self.chances.pause:
            actor.wakes_at = self.now + self.random.choice([5, 20, 60, 200])
            self.events["pause"] += 1
            return
        assert actor.pending is not None
        kind, call = actor.pending
        chance = self.random.random()
        if actor.restarts and chance < self.chances.crash:
            self._crash(actor, call)
        elif kind != "clock" and chance < self.chances.crash + self.chances.fault:
            self._fail(actor, kind, call)
        else:
            self._answer(actor, call)

    def hand_over(self, kind: str, call: Call) -> Any:
        """Wait for the world to make this call; outside of actors it is made at once."""
        mine = next((actor for actor in self.actors if actor.thread is getcurrent()), None)
        if mine is None:
            return call()
        mine.pending = (kind, call)
        return mine.thread.parent.switch()

    def stop(self) -> None:
        """End all actors where they are."""
        actors, self.actors = self.actors, []
        for actor in actors:
            actor.thread.throw(GreenletExit)

    def _begin(self, actor: Actor, delay: int) -> None:
        actor.wakes_at = self.now + delay
        actor.thread = greenlet(lambda: actor.run(actor))
        self.actors.append(actor)
        self._resume(actor, actor.thread.switch)

    def _resume(self, actor: Actor, switch: Callable[[], Any]) -> None:
        """Let an actor run until its next call; one whose job failed begins anew, as Spark's do."""
        actor.pending = None
        try:
            switch()
        except (KlogError, OSError):
            self.events["failed"] += 1
            self.actors.remove(actor)
            if actor.restarts:
                self._begin(Actor(actor.name, actor.run, actor.skew_ms, True), 10)
            return
        if actor.thread.dead and actor in self.actors:
            self.actors.remove(actor)

    def _crash(self, actor: Actor, call: Call) -> None:
        self.events["crash"] += 1
        again = Actor(actor.name, actor.run, actor.skew_ms, True)
        if self.random.random() < 0.5:
            _quietly(call)
            self.actors.remove(actor)
            actor.thread.throw(GreenletExit)
        elif self.random.random() < 0.5:
            self.events["zombie"] += 1
            actor.restarts = False
            actor.wakes_at = self.now + self.random.choice([10, 50, 150, 300])
        else:
            self.actors.remove(actor)
            actor.thread.throw(GreenletExit)
        self._begin(again, self.random.choice([1, 10, 40]))

    def _fail(self, actor: Actor, kind: str, call: Call) -> None:
        mode = self.random.choice(["before", "after", "after", "late"])
        if mode == "late" and kind in ("create", "put", "delete"):
            self._late.append((self.now + self.random.choice([3, 30, 200]), call))
        elif mode != "before":
            _quietly(call)
        self.events[f"fault {mode}"] += 1
        if kind == "create":
            # A client that sends again by itself finds its own file there.
            there = mode == "after" and self.random.random() < 0.6
            self._resume(actor, lambda: actor.thread.switch(Put.EXISTS if there else Put.UNKNOWN))
        else:
            self._resume(actor, lambda: actor.thread.throw(StoreDownError("no answer")))

    def _answer(self, actor: Actor, call: Call) -> None:
        try:
            found = call()
        except FileNotFoundError as exc:
            missing = exc
            self._resume(actor, lambda: actor.thread.throw(missing))
        else:
            self._resume(actor, lambda: actor.thread.switch(found))

    def _land_late_calls(self) -> None:
        due = [call for time, call in self._late if time <= self.now]
        self._late = [(time, call) for time, call in self._late if time > self.now]
        for call in due:
            _quietly(call)


def _quietly(call: Call) -> None:
    """Make a call whose caller does not learn what came of it."""
    try:
        call()
    except FileNotFoundError:
        return


class SimulatedStore:
    """The world's store: a flat space of names, listed in no order."""

    def __init__(self, world: World) -> None:
        self._world = world

    def entries(self, directory: str) -> list[Entry]:
        """List one level."""
        return list(self._again("list", lambda: self._list(directory)))

    def _list(self, directory: str) -> list[Entry]:
        found: dict[str, Entry] = {}
        start = directory.rstrip("/") + "/"
        for path, data in self._world.files.items():
            if path.startswith(start):
                name, below, _ = path[len(start) :].partition("/")
                found[name] = Entry(name, start + name, len(data), bool(below))
        if not found:
            raise FileNotFoundError(directory)
        listed = list(found.values())
        self._world.random.shuffle(listed)
        return listed

    def open(self, path: str) -> Any:
        """No protocol opens files."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Read a file."""
        return bytes(self._again("read", lambda: self._read(path)))

    def _again(self, kind: str, call: Call) -> Any:
        """Ask again while there is no answer, as every store's client does where it is harmless."""
        for _ in range(TRIES - 1):
            try:
                return self._world.hand_over(kind, call)
            except StoreDownError:
                continue
        return self._world.hand_over(kind, call)

    def _read(self, path: str) -> bytes:
        if path not in self._world.files:
            raise FileNotFoundError(path)
        return self._world.files[path]

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create a file."""
        found = self._world.hand_over("create", lambda: self._create(path, data))
        assert isinstance(found, Put)
        return found

    def _create(self, path: str, data: bytes) -> Put:
        if path in self._world.files:
            return Put.EXISTS
        self._world.files[path] = data
        self._world.created.append((path, data))
        return Put.CREATED

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file."""
        data = b"".join(pieces)
        self._again("put", lambda: self._world.files.update({path: data}))

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._world.hand_over("delete", lambda: self._world.files.pop(path, None))
