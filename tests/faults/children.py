"""Processes that work on a topic on local disk, and are killed or stopped at a chosen step.

A step is a system call that changes something under the root. The process sends the signal to
itself, so it arrives exactly before the n-th step, after it, or half-way through a write. The
processes are forked from a server process without threads, which takes milliseconds.
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
from tests.support.waiting import TIMEOUT_SECONDS

STEPS = ("mkdir", "open", "write", "fsync", "link", "replace", "unlink")
PROBE = "probe-"
"""In the names of files that probe a store: their number varies, and they are not part of a log."""
NEVER = -1

Task = Callable[[CommitLog], Any]
_FORKING = multiprocessing.get_context("forkserver")
# pyarrow imports pandas when it makes its first array, which takes seconds in each child.
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
    """A process that runs a task; `output` is the task's result, "" until the process sends it."""

    def __init__(self, task: Task, root: Path, interrupt: Interrupt = Interrupt()) -> None:
        self._receiver, sender = _FORKING.Pipe(duplex=False)
        arguments = (task, str(root), interrupt, sender)
        self.process: ForkServerProcess = _FORKING.Process(target=_work, args=arguments)
        self.process.start()
        sender.close()
        self.output = ""

    def wait(self) -> int:
        """Wait for the process to end; return its exit code, negative if a signal ended it."""
        self.process.join(TIMEOUT_SECONDS)
        code = self.process.exitcode
        assert code is not None, "the process hangs"
        if self._receiver.poll():
            self.output = _received(self._receiver)
        self._receiver.close()
        self.process.close()
        return code

    def wait_for_stop(self) -> bool:
        """Wait until the process is stopped; return False if it ended first."""
        assert self.process.pid is not None
        deadline = time.monotonic() + TIMEOUT_SECONDS
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
        raise AssertionError("the process hangs")

    def resume(self) -> int:
        """Resume a stopped process and wait for it to end."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)
        return self.wait()


def _received(receiver: Any) -> str:
    try:
        return str(receiver.recv())
    except EOFError:
        return ""


def _work(task: Task, root: str, interrupt: Interrupt, sender: Any) -> None:
    """Run the task in the child, and send its result, `done` or the name of an error."""
    log = signed_topic.log_on(LocalStore(), root)
    try:
        with steps_of(root, interrupt):
            result = task(log)
    except Exception as exc:  # noqa: BLE001 - the parent judges it
        sender.send(f"{type(exc).__name__}: {exc}")
    else:
        sender.send("done" if result is None else str(result))
    sender.close()


@contextmanager
def steps_of(root: str, interrupt: Interrupt) -> Iterator[list[str]]:
    """Count the steps of this process under a root, and send the signal at its step."""
    steps = _Steps(root, interrupt)
    usual = {name: getattr(os, name) for name in STEPS}
    for name, real in usual.items():
        setattr(os, name, steps.counted(name, real))
    try:
        yield steps.calls
    finally:
        for name, real in usual.items():
            setattr(os, name, real)


class _Steps:
    def __init__(self, root: str, interrupt: Interrupt) -> None:
        self.calls: list[str] = []
        self._root, self._interrupt = root, interrupt
        self._paths: dict[int, str] = {}

    def counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            path = str(self._paths.get(arguments[0], arguments[0]))
            is_step = path.startswith(self._root) and not self._is_of_probe(name, path)
            if is_step and (name != "open" or arguments[1] & os.O_CREAT):
                self.calls.append(f"{name} {path[len(self._root) :]}")
                self._interrupted("before")
                if name == "write" and self._is_now("during"):
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    self._interrupted("during")
            result = real(*arguments, **named)
            if name == "open":
                self._paths[result] = path
            self._interrupted("after")
            return result

        return call

    def _is_of_probe(self, name: str, path: str) -> bool:
        return PROBE in path or (name == "fsync" and path == f"{self._root}/_klog")

    def _is_now(self, when: str) -> bool:
        return len(self.calls) - 1 == self._interrupt.at and self._interrupt.when == when

    def _interrupted(self, when: str) -> None:
        if self._is_now(when):
            os.kill(os.getpid(), self._interrupt.signal)
