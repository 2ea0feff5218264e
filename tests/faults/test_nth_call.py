"""Each call of each operation fails in each way, before or after it takes effect.

After the fault the topic is as before or as after the operation, never between. An error that does
not say "unknown" means that nothing changed. After a second run each record is there once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import fsspec
import pytest

from klog.connector.commit_log import (
    commit_builders,
    root_discovery,
    topic_restore,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.store.memory_store import MemoryStore
from klog.errors import CommitStateUnknownError, KlogError
from tests.connector.commit_log import memory_logs
from tests.connector.commit_log.memory_logs import DAY_MS, Clock, CountingStore
from tests.faults import signed_topic
from tests.faults.failing import FailingStore, Fault
from tests.faults.signed_topic import TOPIC_ID, new, writer
from tests.support.sampled_cases import sampled

ROOT = "/root"
MAX_CALLS = 100

pytestmark = pytest.mark.slow

Run = Callable[[CommitLog], Any]


def history() -> tuple[CountingStore, Clock]:
    """Create a topic with live and removed segments and an orphan file, over some days."""
    store, clock = CountingStore(), Clock()
    log = signed_topic.log_on(store, ROOT, clock, lambda tries: None)
    state = signed_topic.append(log, signed_topic.create(log), {0: ["a0", "a1"], 1: ["b0"]})
    signed_topic.stage(log, state, {0: ["never committed"]})
    state = signed_topic.append(log, state, {0: ["a2"]})
    state = signed_topic.append(log, state, {0: ["w0"]}, writer(0))
    state = log.commit(state, signed_topic.merge_first_two(log, state, 0), new("merge"))
    for line in ("b1", "b2"):
        clock.now_ms += 2 * DAY_MS
        state = signed_topic.append(log, state, {1: [line]})
    clock.now_ms += 2 * DAY_MS
    return store, clock


def append(log: CommitLog) -> None:
    signed_topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]})


def named_append(log: CommitLog) -> None:
    signed_topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]}, writer(1))


def alter_config(log: CommitLog) -> None:
    build = commit_builders.alter_config(TOPIC_ID, {}, {"retention.ms": "1"})
    log.commit(log.load(), build, new("alter-config"))


def merge(log: CommitLog) -> None:
    state = log.load()
    log.commit(state, signed_topic.merge_first_two(log, state, 1), new("merge"))


def delete_records(log: CommitLog) -> None:
    build = commit_builders.delete_records(TOPIC_ID, {0: 1, 1: 2})
    log.commit(log.load(), build, new("delete-records"))


def add_partitions(log: CommitLog) -> None:
    log.commit(log.load(), commit_builders.add_partitions(TOPIC_ID, 3), new("add-partitions"))


def delete_topic(log: CommitLog) -> None:
    log.commit(log.load(), commit_builders.delete_topic(TOPIC_ID), new("delete-topic"))


def checkpoint_and_expire(log: CommitLog) -> None:
    memory_logs.checkpoint_and_expire(log, DAY_MS)


def restore(log: CommitLog) -> None:
    topic_restore.restore_log(log, log.load(), 2)


def vacuum(log: CommitLog) -> None:
    topic_vacuum.vacuum(log, new("vacuum"), DAY_MS)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and whether running it twice is the same as once."""

    run: Run
    is_idempotent: bool = False


OPERATIONS = (
    Operation(append),
    Operation(named_append, is_idempotent=True),
    Operation(alter_config),
    Operation(merge),
    Operation(delete_records, is_idempotent=True),
    Operation(add_partitions),
    Operation(delete_topic, is_idempotent=True),
    Operation(checkpoint_and_expire, is_idempotent=True),
    Operation(vacuum, is_idempotent=True),
    Operation(restore, is_idempotent=True),
)


def user_view(log: CommitLog) -> dict[str, Any]:
    """Return what a user sees of the topic after a fresh load."""
    state = log.load()
    return {
        "topic": state.topic_id,
        "records": signed_topic.records_of(log, state),
        "segments": len(state.segments),
        "log start": state.log_start,
        "config": dict(state.config),
    }


@pytest.mark.parametrize(
    "case",
    sampled(product(OPERATIONS, Fault), 3, pytest.mark.full),
    ids=lambda case: f"{case[0].run.__name__}-{case[1].name}",
)
def test_f03_f06_each_call_failing(case: tuple[Operation, Fault]) -> None:
    operation, fault = case
    base, clock = history()

    def begin() -> tuple[CountingStore, FailingStore, CommitLog]:
        files = CountingStore(dict(base.files))
        store = FailingStore(files)
        return files, store, signed_topic.log_on(store, ROOT, clock, lambda tries: None)

    files, store, log = begin()
    before = user_view(log)
    operation.run(log)
    after, remaining = user_view(log), kept_files(files)
    for at in range(MAX_CALLS):
        files, store, log = begin()
        store.fail(fault, at)
        error = outcome(operation, log)
        was_reached = store.was_reached
        store.land()
        store.heal()
        actual = user_view(log)
        check_outcome(error, actual, before, after)
        if actual == before or operation.is_idempotent:
            operation.run(log)
        assert user_view(log) == after
        if operation.run in (checkpoint_and_expire, vacuum):
            assert kept_files(files) == remaining
        if not was_reached:
            assert error is None
            return
    raise AssertionError("it never ended")


def outcome(operation: Operation, log: CommitLog) -> KlogError | None:
    try:
        operation.run(log)
    except KlogError as exc:
        return exc
    return None


def check_outcome(error: KlogError | None, actual: Any, before: Any, after: Any) -> None:
    if error is None:
        assert actual == after
    elif isinstance(error, CommitStateUnknownError):
        assert actual in (before, after)
        assert "klog history" in str(error)
        assert "delete nothing" in str(error)
    else:
        assert actual == before
        assert "again" in str(error)


def root_or_error(new_id: str) -> tuple[KlogRoot | None, KlogError | None]:
    try:
        return find_or_create_root("made", new_id), None
    except KlogError as exc:
        return None, exc


def kept_files(files: CountingStore) -> list[str]:
    """Return the segments and the first commit: a fault may keep more commits or checkpoints."""
    segments = [path for path in files.files if path.endswith(".log")]
    commits = [path for path in files.files if "/log/" in path]
    return [*sorted(segments), min(commits)]


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_f03_f06_each_call_failing_while_a_root_is_created(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of the calls varies from run to run; what must hold does not."""
    store = FailingStore(MemoryStore())
    monkeypatch.setattr(root_discovery, "writable_store_for", lambda url, storage: (store, "/made"))
    for at in range(MAX_CALLS):
        store.fail(fault, at)
        root, error = root_or_error(f"first {at}")
        assert error is None or "again" in str(error)
        was_reached = store.was_reached
        store.land()
        store.heal()
        again = find_or_create_root("made", f"second {at}")
        assert root is None or root.cluster_id == again.cluster_id
        assert find_or_create_root("made", "third").cluster_id == again.cluster_id
        fsspec.filesystem("memory").store.clear()
        if not was_reached:
            assert root is not None
            return
    raise AssertionError("it never ended")
