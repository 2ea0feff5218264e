"""Processes that work on a topic on local disk, and are killed or stopped at a step of their own.

A step is a call of the kernel that changes something under the root. The process sends itself the
signal, so that it comes exactly before the n-th step, after it, or half-way through a write. They
are forked from a server process without threads, which takes milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psutil

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.store.local_store import LocalStore
from tests.faults import signed_topic

STEPS = ("mkdir", "open", "write", "fsync", "link", "replace", "unlink")
PROBE = "probe-"
"""In the names of what a store is tried with: how often is chance, and it is no part of a log."""
WAIT_SECONDS = 60
NEVER = -1

Task = Callable[[CommitLog], Any]
_FORKING = multiprocessing.get_context("forkserver")
# pyarrow imports pandas when it first makes an array, which would take each child seconds.
_FORKING.set_forkserver_preload(
    ["pytest", "pandas", "tests.faults.children", "tests.faults.verbs", "tests.faults.process_work"]
)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A signal that a process sends itself at its n-th step: `before`, `during` or `after` it."""

    at: int = NEVER
    when: str = "before"
    signal: int = signal.SIGKILL


class Child:
    """A process that does a task; `said` is what became of it, "" while it has said nothing."""

    def __init__(self, task: Task, root: Path, interrupt: Interrupt = Interrupt()) -> None:
        self._said, saying = _FORKING.Pipe(duplex=False)
        arguments = (task, str(root), interrupt, saying)
        self.process: ForkServerProcess = _FORKING.Process(target=_work, args=arguments)
        self.process.start()
        saying.close()
        self.said = ""

    def wait(self) -> int:
        """Wait for its end; gives its exit code, that of a signal as a negative number."""
        self.process.join(WAIT_SECONDS)
        code = self.process.exitcode
        assert code is not None, "it hangs"
        if self._said.poll():
            self.said = _received(self._said)
        self._said.close()
        self.process.close()
        return code

    def wait_for_stop(self) -> bool:
        """Wait until it is stopped; False if it came to its end first."""
        assert self.process.pid is not None
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                status = psutil.Process(self.process.pid).status()
            except psutil.NoSuchProcess:
                return False
            if status == psutil.STATUS_STOPPED:
                return True
            if status == psutil.STATUS_ZOMBIE:
                return False
            time.sleep(0.002)
        raise AssertionError("it hangs")

    def resume(self) -> int:
        """Let a stopped process go on to its end."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)
        return self.wait()


def _received(said: Any) -> str:
    try:
        return str(said.recv())
    except EOFError:
        return ""


def _work(task: Task, root: str, interrupt: Interrupt, saying: Any) -> None:
    """Be the child: do the task, and say what came of it: `done` or the name of an error."""
    log = signed_topic.log_on(LocalStore(), root)
    try:
        with steps_of(root, interrupt):
            found = task(log)
    except Exception as exc:  # noqa: BLE001 - the parent judges it
        saying.send(f"{type(exc).__name__}: {exc}")
    else:
        saying.send("done" if found is None else str(found))
    saying.close()


@contextmanager
def steps_of(root: str, interrupt: Interrupt) -> Iterator[list[str]]:
    """Count what this process changes under a root, and send the signal at the step."""
    steps = _Steps(root, interrupt)
    usual = {name: getattr(os, name) for name in STEPS}
    for name, real in usual.items():
        setattr(os, name, steps.counted(name, real))
    try:
        yield steps.made
    finally:
        for name, real in usual.items():
            setattr(os, name, real)


class _Steps:
    def __init__(self, root: str, interrupt: Interrupt) -> None:
        self.made: list[str] = []
        self._root, self._interrupt = root, interrupt
        self._paths: dict[int, str] = {}

    def counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            path = str(self._paths.get(arguments[0], arguments[0]))
            is_step = path.startswith(self._root) and not self._is_of_probe(name, path)
            if is_step and (name != "open" or arguments[1] & os.O_CREAT):
                self.made.append(f"{name} {path[len(self._root) :]}")
                self._interrupted("before")
                if name == "write" and self._is_now("during"):
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    self._interrupted("during")
            found = real(*arguments, **named)
            if name == "open":
                self._paths[found] = path
            self._interrupted("after")
            return found

        return call

    def _is_of_probe(self, name: str, path: str) -> bool:
        return PROBE in path or (name == "fsync" and path == f"{self._root}/_klog")

    def _is_now(self, when: str) -> bool:
        return len(self.made) - 1 == self._interrupt.at and self._interrupt.when == when

    def _interrupted(self, when: str) -> None:
        if self._is_now(when):
            os.kill(os.getpid(), self._interrupt.signal)
