"""Vacuum finds all files of a write that failed, at whichever put it failed."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from klog.connector.commit_log.topic_vacuum import vacuum
from klog.connector.embedded_append import append
from klog.errors import KlogError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    attempt,
    created,
    topic_log,
)

ROWS = pa.table({"value": [bytes(70_000)] * 2, "partition": [0, 1]})
OPTIONS = {"compression.type": "none"}
PUTS = 6
"""A log and two indexes in each of two partitions."""


class FailingStore(CountingStore):
    """A store that fails at its nth put, before or after it writes the file."""

    def __init__(self, failing_put: int, is_written: bool) -> None:
        super().__init__()
        self._puts_left, self._is_written = failing_put, is_written

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file, or fail."""
        self._puts_left -= 1
        if self._puts_left or self._is_written:
            super().put(path, pieces)
        if not self._puts_left:
            raise KlogError("the store is gone")


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("failing_put", range(1, PUTS + 1))
def test_vacuum_removes_all_files_of_a_write_that_failed_at_any_put(
    failing_put: int, is_written: bool
) -> None:
    store, clock = FailingStore(failing_put, is_written), Clock()
    log = topic_log(store, clock)
    state = created(log)
    with pytest.raises(KlogError, match="the store is gone"):
        append(log, state, ROWS, attempt("append"), OPTIONS)
    assert log.load().version == state.version, "nothing was committed"
    clock.now_ms += 2 * DAY_MS
    result = append(log, state, ROWS, attempt("append"), OPTIONS)
    assert store.requests["put"] >= PUTS
    live = set(result.state.segments["file"].to_pylist())
    clock.now_ms += 2 * DAY_MS
    vacuum(log, attempt("vacuum"))
    remaining = {path for path in store.files if "/orders-" in path}
    assert remaining == {
        f"/root/{file.removesuffix('.log')}{suffix}"
        for file in live
        for suffix in (".log", ".index", ".timeindex")
    }
