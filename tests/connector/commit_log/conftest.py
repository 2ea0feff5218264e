"""Topics of a root on a store in memory."""

from __future__ import annotations

from itertools import count

import pytest

from klog.connector.commit_log import klog_root, root_discovery
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from tests.connector.commit_log.memory_logs import ROOT, Clock, CountingStore


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """Return the store of every path; the clock stands still and nobody sleeps."""
    counting_store = CountingStore()
    for name in ("log_store_for", "writable_store_for"):
        monkeypatch.setattr(
            root_discovery, name, lambda location, storage: (counting_store, location)
        )
    monkeypatch.setattr(klog_root, "now_ms", Clock())
    monkeypatch.setattr(klog_root, "back_off", lambda tries: None)
    return counting_store


@pytest.fixture
def topics(store: CountingStore) -> TopicAdmin:
    numbers = count()
    admin = TopicAdmin(
        find_or_create_root(ROOT, "a cluster"), "test", lambda: f"id {next(numbers)}"
    )
    store.requests.clear()
    return admin
