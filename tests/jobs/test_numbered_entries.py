"""Numbered entries: stores that do not answer, and entries that nothing could read."""

from __future__ import annotations

import pytest

from klog.connector.store.writable_store import PutResult
from klog.errors import CommitStateUnknownError, KlogError
from klog.jobs.shared import numbered_entries
from klog.jobs.shared.numbered_entries import MAX_PUTS, NumberedEntries
from tests.connector.commit_log.memory_logs import CountingStore


class SilentStore(CountingStore):
    """It does not say whether a put landed, and none has."""

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Answer nothing."""
        return PutResult.UNKNOWN


def test_a_store_that_never_answers_is_an_error() -> None:
    waits: list[int] = []
    entries = NumberedEntries(SilentStore(), "d", waits.append)
    with pytest.raises(CommitStateUnknownError, match="Run the job again"):
        entries.put(0, {"id": "a"})
    assert waits == list(range(1, MAX_PUTS + 1))


def test_an_entry_that_could_not_be_read_is_not_put(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered_entries, "MAX_ENTRY_BYTES", 100)
    store = CountingStore()
    entries = NumberedEntries(store, "d", lambda tries: None)
    assert entries.put(0, {"id": "a"})
    files = dict(store.files)
    with pytest.raises(KlogError, match=r"1\.json: this entry would have .* too many files"):
        entries.put(1, {"id": "b", "files": ["x" * 100]})
    assert store.files == files
