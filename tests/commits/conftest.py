"""Topics of a root on a store in memory."""

from __future__ import annotations

from itertools import count

import pytest

from klog.connector.log import root
from klog.connector.log.root import make_root
from klog.connector.log.topics import Topics
from tests.commits.logs import ROOT, Clock, CountingStore


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """Stand behind every path; the clock stands still and nobody sleeps."""
    made = CountingStore()
    for name in ("log_store_for", "writable_store_for"):
        monkeypatch.setattr(root, name, lambda given, storage: (made, given))
    monkeypatch.setattr(root, "now_ms", Clock())
    monkeypatch.setattr(root, "back_off", lambda tries: None)
    return made


@pytest.fixture
def topics(store: CountingStore) -> Topics:
    numbers = count()
    made = Topics(make_root(ROOT, "a cluster"), "test", lambda: f"id {next(numbers)}")
    store.requests.clear()
    return made
