"""Topics made while calls fail, answers are lost, and many make them at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from klog.connector.commit_log import root_discovery
from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, OptionError
from tests.connector.commit_log.memory_logs import ROOT, CountingStore


class Fails(CountingStore):
    """The `at`th call fails, before it had an effect or after."""

    def __init__(self, at: int, *, has_effect: bool) -> None:
        super().__init__()
        self.left, self.has_effect = at, has_effect

    def _call(self, does: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left:
            return does()
        if self.has_effect:
            with suppress(FileNotFoundError):
                does()
        raise KlogError("the store is gone")

    def entries(self, directory: str) -> Any:
        return self._call(lambda: super(Fails, self).entries(directory))

    def read(self, path: str, max_bytes: int | None = None) -> Any:
        return self._call(lambda: super(Fails, self).read(path, max_bytes))

    def put_if_absent(self, path: str, data: bytes) -> Any:
        return self._call(lambda: super(Fails, self).put_if_absent(path, data))


def created_on(store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> TopicAdmin:
    """Create a root and a topic in it."""
    for name in ("log_store_for", "writable_store_for"):
        monkeypatch.setattr(root_discovery, name, lambda location, storage: (store, location))
    topics = TopicAdmin(find_or_create_root(ROOT, "a cluster"), "test", random_uuid)
    topics.ensure("or.ders", 3)
    return topics


@pytest.mark.parametrize("has_effect", [False, True])
def test_whatever_call_fails_the_same_command_can_be_run_again(
    monkeypatch: pytest.MonkeyPatch, store: CountingStore, *, has_effect: bool
) -> None:
    monkeypatch.setattr(root_discovery, "probe_put_if_absent", lambda store, directory: None)
    created_on(store, monkeypatch)
    calls = store.requests.total()
    assert calls > 8
    for at in range(1, calls + 1):
        broken = Fails(at, has_effect=has_effect)
        with pytest.raises(KlogError, match=r"the store is gone|did not say"):
            created_on(broken, monkeypatch)
        topics = created_on(broken, monkeypatch)
        assert len(topics.describe("or.ders").partitions) == 3
        assert len(list(topics.history("or.ders"))) == 1


class Forgets(CountingStore):
    """The first puts land, or not, and nobody is told."""

    def __init__(self, *lands: bool) -> None:
        super().__init__()
        self.lands = list(lands)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        if not self.lands:
            return super().put_if_absent(path, data)
        if self.lands.pop(0):
            super().put_if_absent(path, data)
        return PutResult.UNKNOWN


def test_lost_answers_while_a_topic_is_made(topics: TopicAdmin) -> None:
    slow = Forgets()
    slow.files = topics.root.store.files  # type: ignore[attr-defined]
    topics = replace(topics, root=replace(topics.root, store=slow))
    slow.lands = [True, True]
    state = topics.create("orders", 2)  # Its own commit is found by its write id.
    assert (state.partitions, len(list(topics.history("orders")))) == (2, 1)
    slow.lands = [False]
    with pytest.raises(KlogError, match=r"topic\.json: the store did not say"):
        topics.create("payments")
    assert topics.create("payments").version == 0


@pytest.mark.parametrize("location", ["memory:/roots/one", "disk"])
def test_one_of_several_concurrent_writers_creates_the_topic(location: str, tmp_path: Path) -> None:
    path = str(tmp_path / "root") if location == "disk" else f"{location}-{random_uuid()}"
    barrier = Barrier(6)

    def make(number: int) -> str:
        barrier.wait(60)
        topics = TopicAdmin(find_or_create_root(path, f"cluster {number}"), f"maker {number}")
        try:
            return topics.create("orders", number + 1).topic_id
        except OptionError:
            return ""

    with ThreadPoolExecutor(6) as pool:
        topic_ids = [topic_id for topic_id in pool.map(make, range(6)) if topic_id]
    root = find_root(path)
    assert root is not None
    (commit,) = TopicAdmin(root).history("orders")
    created = commit.actions.create_topic
    assert created is not None
    assert [created.topic_id] == topic_ids
    assert commit.engine == f"maker {created.partitions - 1}"
