"""What tests of the connector share: hypothesis without a deadline, and a count of requests.

CI's machines are shared, and a slow example is not a defect.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings

from klog.connector.store.local_store import LocalFile, LocalStore

settings.register_profile("klog", deadline=None)
settings.load_profile("klog")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is asked of the local store: `list`, `open`, `read` (a whole file), `range`."""
    counts: Counter[str] = Counter()

    def count(owner: type, name: str, kind: str) -> None:
        original = getattr(owner, name)

        def counted(self: Any, *args: Any) -> Any:
            counts[kind] += 1
            return original(self, *args)

        monkeypatch.setattr(owner, name, counted)

    count(LocalStore, "read", "read")
    count(LocalStore, "entries", "list")
    count(LocalStore, "names_after", "list")
    count(LocalStore, "open", "open")
    count(LocalFile, "read", "range")
    return counts
