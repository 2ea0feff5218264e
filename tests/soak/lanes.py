"""The processes of a soak: each lane is a producer or consumer over all of its lives.

A kind of producer is a function (`StartProducer`) that starts one life of a lane. A producer

    writes the values "<lane>.0", "<lane>.1", ... to the topic, after those in the log, and reports
    each as `producer_send_success` once it is acknowledged: a JSON object on a line of the file
    `events`, with `value`, and with `partition` and `offset` if it knows them. It ends at SIGTERM.

`klog_producer` starts `klog verifiable-producer`; `Command` is a life of any command.
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
# A child starts within milliseconds, with its modules imported.
_FORKING.set_forkserver_preload(
    ["pandas", "klog.cli", "klog.connector.embedded", "tests.soak.soak_jobs"]
)


class Process(Protocol):
    """A running life: a `multiprocessing.Process`, or a `Command`."""

    @property
    def pid(self) -> int | None:
        """Return the process id."""

    def is_alive(self) -> bool:
        """Return whether the process runs."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process ends, up to `timeout` seconds."""


class Command:
    """A command as a life; its standard output goes to `events`."""

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
    """Start a life that calls `work` in a forked process."""
    process: Any = _FORKING.Process(target=_work, args=(work, arguments, str(events)), daemon=True)
    process.start()
    life: Process = process
    return life


def _work(work: Callable[..., object], arguments: tuple[object, ...], events: str) -> None:
    for path, descriptor in ((Path(events), 1), (Path(events).with_suffix(".err"), 2)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, descriptor)
    result = work(*arguments)
    sys.exit(result if isinstance(result, int) else 0)


@dataclass(frozen=True, slots=True)
class Target:
    """The topic of a soak, and a producer's throughput in messages a second."""

    root: str
    topic: str
    throughput: int


StartProducer: TypeAlias = Callable[[Target, int, Path], Process]
"""Start one life of a lane; its events go to the path, a new one for each life."""


def klog_producer(target: Target, lane: int, events: Path) -> Process:
    """Start `klog verifiable-producer`; every second lane has keys."""
    keys = ("--repeating-keys", "7") if lane % 2 else ()
    return _klog(
        events, "verifiable-producer", "--root", target.root, "--topic", target.topic,
        "--value-prefix", str(lane), "--throughput", str(target.throughput),
        "--batch-messages", "20", *keys,
    )  # fmt: skip


def klog_consumer(target: Target, positions: dict[int, int], events: Path) -> Process:
    """Start `klog verifiable-consumer` at these positions."""
    start = ",".join(f"{partition}:{offset}" for partition, offset in positions.items())
    return _klog(
        events, "verifiable-consumer", "--root", target.root, "--topic", target.topic, "--verbose",
        *(("--start", start) if start else ()),
    )  # fmt: skip


def _klog(events: Path, *arguments: str) -> Process:
    return forked(main, arguments, events=events)


@dataclass(slots=True)
class Lane:
    """A producer, consumer or job over its lives; `start` starts one, with its events' path."""

    name: str
    folder: Path
    start: Callable[[Path], Process] | None = None
    life: Process | None = None
    paths: list[Path] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        """Whether the current life runs."""
        return self.life is not None and self.life.is_alive()

    def begin(self) -> None:
        """Start a new life."""
        path = self.folder / f"{self.name}-{len(self.paths):04d}.json"
        self.paths.append(path)
        assert self.start is not None
        self.life = self.start(path)

    def kill(self) -> None:
        """End the life by SIGKILL."""
        if self.life is not None:
            self.life.kill()
            self.life.join()

    def end(self, seconds: float) -> None:
        """End the life by SIGTERM; raise `AssertionError` if it does not end in time."""
        if self.life is None:
            return
        self.life.terminate()
        self.life.join(seconds)
        assert not self.life.is_alive(), f"{self.name} does not end"


def events_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of one life, without an incomplete last line."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def positions_of(path: Path, positions: dict[int, int]) -> dict[int, int]:
    """Return the positions after a life of a consumer that began at `positions`."""
    next_positions = dict(positions)
    for event in events_of(path):
        for partition in event.get("partitions", ()):
            next_positions[partition["partition"]] = partition["maxOffset"] + 1
    return next_positions
