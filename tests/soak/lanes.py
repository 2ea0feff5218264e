"""The processes of a soak: each lane is one producer or consumer over all of its lives.

A kind of producer is a function (`StartProducer`) that starts one life of a lane. What it has to
do, whatever it is made of:

    it writes the values "<lane>.0", "<lane>.1", ... to the topic, from where the log has them on,
    and tells each as `producer_send_success` once it is acknowledged: an object of JSON a line, at
    the path given, with `value`, and `partition` and `offset` if it knows them. It ends at SIGTERM.

`klog_producer` is the one of `klog verifiable-producer`; `Command` makes a life of any command.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from klog.cli import main

_FORKING = multiprocessing.get_context("forkserver")
# A child begins within milliseconds, with all that it needs imported.
_FORKING.set_forkserver_preload(
    ["pandas", "klog.cli", "klog.connector.embedded", "tests.soak.soak_jobs"]
)


class Process(Protocol):
    """A life under way: a `multiprocessing.Process`, or a `Command`."""

    @property
    def pid(self) -> int | None:
        """Give its number."""

    def is_alive(self) -> bool:
        """Tell whether it has not ended."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, no longer than this."""


class Command:
    """A command as a life; its standard output goes to the path."""

    def __init__(self, command: Sequence[str], events: Path) -> None:
        with events.open("ab") as out, events.with_suffix(".err").open("ab") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err)
        self.pid: int | None = self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)


def forked(work: Callable[..., object], *arguments: object, events: Path) -> Process:
    """Start a life that does this in a process forked for it."""
    process: Any = _FORKING.Process(target=_work, args=(work, arguments, str(events)), daemon=True)
    process.start()
    life: Process = process
    return life


def _work(work: Callable[..., object], arguments: tuple[object, ...], events: str) -> None:
    for path, descriptor in ((Path(events), 1), (Path(events).with_suffix(".err"), 2)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, descriptor)
    found = work(*arguments)
    sys.exit(found if isinstance(found, int) else 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a soak happens, and how fast a producer may be, in messages a second."""

    root: str
    topic: str
    throughput: int


StartProducer: TypeAlias = Callable[[Place, int, Path], Process]
"""Starts one life of a lane; its events go to the path, a new one for each life."""


def klog_producer(place: Place, lane: int, events: Path) -> Process:
    """Start `klog verifiable-producer`; every second lane has keys."""
    keys = ("--repeating-keys", "7") if lane % 2 else ()
    return _klog(
        events, "verifiable-producer", "--root", place.root, "--topic", place.topic,
        "--value-prefix", str(lane), "--throughput", str(place.throughput),
        "--batch-messages", "20", *keys,
    )  # fmt: skip


def klog_consumer(place: Place, positions: dict[int, int], events: Path) -> Process:
    """Start `klog verifiable-consumer` at these positions."""
    start = ",".join(f"{partition}:{offset}" for partition, offset in positions.items())
    return _klog(
        events, "verifiable-consumer", "--root", place.root, "--topic", place.topic, "--verbose",
        *(("--start", start) if start else ()),
    )  # fmt: skip


def _klog(events: Path, *arguments: str) -> Process:
    return forked(main, arguments, events=events)


@dataclass(slots=True)
class Lane:
    """One producer, consumer or job over its lives; `start` begins one, with its events' path."""

    name: str
    folder: Path
    start: Callable[[Path], Process] | None = None
    life: Process | None = None
    paths: list[Path] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        """Tell whether its life has not ended."""
        return self.life is not None and self.life.is_alive()

    def begin(self) -> None:
        """Begin a new life."""
        path = self.folder / f"{self.name}-{len(self.paths):04d}.json"
        self.paths.append(path)
        assert self.start is not None
        self.life = self.start(path)

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self.life is not None:
            self.life.kill()
            self.life.join()

    def end(self, seconds: float) -> None:
        """Ask it to end; an `AssertionError` if it does not in time."""
        if self.life is None:
            return
        self.life.terminate()
        self.life.join(seconds)
        assert not self.life.is_alive(), f"{self.name} does not end"


def events_of(path: Path) -> Iterator[dict[str, Any]]:
    """Give the events of one life; a last line that a kill cut short is none."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def positions_of(path: Path, positions: dict[int, int]) -> dict[int, int]:
    """Give where a consumer's next life begins, from where this one did and what it told."""
    found = dict(positions)
    for event in events_of(path):
        for one in event.get("partitions", ()):
            found[one["partition"]] = one["maxOffset"] + 1
    return found
