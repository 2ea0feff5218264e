"""Inject a fault at a point of a write, in whichever of Spark's Python processes reaches it.

The rule: Python imports this file when it starts if the folder is on PYTHONPATH, which Spark's
workers inherit; klog does not know it. `KLOG_FAULTS` names a folder of faults, a JSON file each,
which is listed again at every point. A fault happens once, in the first process that reaches it
(`<name>.fired` has its id). It imports only the standard library: executors have no more of ours.

    at      stage       a task begins to write
            batch       a task has taken its Arrow batch `number`
            staged      a task has put its segments, and has not reported it
            commit      all tasks are done, nothing is committed
            put         before the put of a commit
            put done    after the put of a commit, before its caller continues
            landed      all is committed, and Spark does not know
            task        a job's task begins, with its function `work`
            task done   it is done, and nobody knows
            file        before the put of a segment or an index, the process's `number`th
            file done   after that put
            checkpoint  before the put of a checkpoint or of a part of one
            delete      before a file is deleted, the process's `number`th
    act     park        wait until the file `<name>.release` exists
            kill        send SIGKILL to this process
            stop        send SIGSTOP to this process
            executor    send SIGKILL to the parent JVM, and to this process
            raise       raise an error
            sleep       sleep for `seconds`
            lose        (put done) lose the answer; the store is down for this process
            note        do nothing more
"""

from __future__ import annotations

import functools
import importlib.abc
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(os.environ.get("KLOG_FAULTS", "/nowhere"))
MAX_SECONDS = 300
STEP_SECONDS = 0.02
_COMMIT = re.compile(r"_klog/topics/(?P<topic>[^/]+)/log/(?P<version>[0-9]{20})\.json$")


class InjectedError(Exception):
    """The error that a fault raises."""


def reached(at: str, **facts: object) -> list[str]:
    """Run the faults of this point; return their acts."""
    acts = []
    for path in sorted(FOLDER.glob("*.json")):
        fault = json.loads(path.read_text())
        point = {"at": at, **facts}
        if all(point.get(name) == value for name, value in fault["where"].items()) and _claim(path):
            acts.append(fault["act"])
            _act(fault["act"], path, fault["seconds"])
    return acts


def _claim(path: Path) -> bool:
    """Claim a fault; return whether this process is the first to reach it."""
    staged = path.with_suffix(f".{os.getpid()}")
    staged.write_text(str(os.getpid()))
    try:
        os.link(staged, path.with_suffix(".fired"))
    except FileExistsError:
        return False
    finally:
        staged.unlink()
    return True


def _act(act: str, path: Path, seconds: float) -> None:
    if act == "park":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # This process outlives its JVM.
        deadline = time.monotonic() + MAX_SECONDS
        while not path.with_suffix(".release").exists():
            if time.monotonic() > deadline:
                os._exit(1)
            time.sleep(STEP_SECONDS)
    elif act == "sleep":
        time.sleep(seconds)
    elif act == "raise":
        raise InjectedError(path.stem)
    elif act == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif act in ("kill", "executor"):
        if act == "executor":
            # Workers are in the group of the daemon that forked them, which is the JVM's child.
            command = ["ps", "-o", "ppid=", "-p", str(os.getpgid(0))]
            os.kill(int(subprocess.check_output(command)), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _watch_write_task(module: ModuleType) -> None:
    write_task = module.write_task

    def watched_write_task(
        plan: Any, writer: Any, index: int, attempt: int, rows: Iterator[Any]
    ) -> Any:
        facts = {"topic": plan.options.topic, "batch": writer and writer.batch_id, "task": index}

        def watched() -> Iterator[Any]:
            for number, batch in enumerate(rows):
                yield batch
                reached("batch", number=number, **facts)

        reached("stage", **facts)
        message = write_task(plan, writer, index, attempt, watched())
        reached("staged", **facts)
        return message

    module.write_task = watched_write_task  # type: ignore[attr-defined]


def _watch_commit(module: ModuleType) -> None:
    commit = module.commit

    def watched_commit(options: Any, messages: Sequence[Any]) -> None:
        writer = messages[0].writer if messages else None
        facts = {"topic": options.topic, "batch": writer and writer.batch_id}
        reached("commit", **facts)
        commit(options, messages)
        reached("landed", **facts)

    module.commit = watched_commit  # type: ignore[attr-defined]


def _watch_store(store: Any) -> None:
    put_if_absent, read = store.put_if_absent, store.read
    lost: set[str] = set()

    def watched_put(self: Any, path: str, data: bytes) -> Any:
        match = _COMMIT.search(path)
        if match is None:
            return put_if_absent(self, path, data)
        if path in lost:
            return _unknown()
        facts = {"topic": match["topic"], "version": int(match["version"])}
        reached("put", **facts)
        put = put_if_absent(self, path, data)
        if "lose" in reached("put done", **facts):
            lost.add(path)
            return _unknown()
        return put

    def watched_read(self: Any, path: str, *more: Any) -> Any:
        if path in lost:
            raise OSError("the store is down")
        return read(self, path, *more)

    store.put_if_absent, store.read = watched_put, watched_read


def _watch_files(store: Any) -> None:
    put, delete = store.put, store.delete
    puts, deletes = itertools.count(), itertools.count()

    def watched_put(self: Any, path: str, pieces: Any) -> None:
        if "/_klog/" in path:
            if "/checkpoints/" in path or "/parts/" in path:
                reached("checkpoint")
            put(self, path, pieces)
            return
        number = next(puts)
        reached("file", number=number)
        put(self, path, pieces)
        reached("file done", number=number)

    def watched_delete(self: Any, path: str) -> None:
        reached("delete", number=next(deletes))
        delete(self, path)

    store.put, store.delete = watched_put, watched_delete


def _watch(store: Any) -> None:
    _watch_store(store)
    _watch_files(store)


def _unknown() -> Any:
    from klog.connector.store.writable_store import PutResult

    return PutResult.UNKNOWN


def _watch_tasks(module: ModuleType) -> None:
    tried = module.run_with_retries

    # Spark's pickler refers to it by name, so executors use their own.
    @functools.wraps(tried)
    def watched(work: Callable[[Any], Any], task: Any) -> Any:
        facts = {"work": work.__name__, "partition": getattr(task, "partition", None)}
        reached("task", **facts)
        done = tried(work, task)
        reached("task done", **facts)
        return done

    module.run_with_retries = watched  # type: ignore[attr-defined]


def _watch_abort(module: ModuleType) -> None:
    """Record that Spark called `abort` for a topic."""
    for writer in (module.KlogBatchWriter, module.KlogStreamWriter):

        def abort(self: Any, *arguments: Any, real: Callable[..., None] = writer.abort) -> None:
            FOLDER.joinpath(f"{self._options.topic}.aborted").touch()
            real(self, *arguments)

        writer.abort = abort


WATCHED: dict[str, Callable[[Any], None]] = {
    "klog.jobs.shared.task_retries": _watch_tasks,
    "klog.connector.sink.task_writer": _watch_write_task,
    "klog.connector.sink.write_commit": _watch_commit,
    "klog.connector.sink.spark_writers": _watch_abort,
    "klog.connector.store.local_store": lambda module: _watch(module.LocalStore),
    "klog.connector.store.s3_store": lambda module: _watch(module.S3Store),
    "klog.connector.store.hdfs_store": lambda module: _watch(module.HdfsStore),
}


class _Loader(importlib.abc.Loader):
    def __init__(self, real: Any, watch: Callable[[Any], None]) -> None:
        self._real, self._watch = real, watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        self._watch(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules by the other finders, and watches them."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in WATCHED:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = _Loader(spec.loader, WATCHED[name])
                return spec
        return None


if FOLDER.is_dir():
    sys.meta_path.insert(0, _Finder())
