"""What an attempt leaves that never commits: vacuum finds all of it, wherever the writer died."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from klog.connector.log.garbage import vacuum
from klog.connector.sink.append import append
from klog.errors import KlogError
from tests.commits.logs import DAY_MS, Clock, CountingStore, attempt, created, topic_log

ROWS = pa.table({"value": [bytes(70_000)] * 2, "partition": [0, 1]})
OPTIONS = {"compression.type": "none"}
PUTS = 6
"""A log and two indexes in each of two partitions."""


class FailingStore(CountingStore):
    """Dies at a put: before it, or when the file is there and the answer is not."""

    def __init__(self, fails_at: int, is_there: bool) -> None:
        super().__init__()
        self._left, self._is_there = fails_at, is_there

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file, or fail."""
        self._left -= 1
        if self._left or self._is_there:
            super().put(path, pieces)
        if not self._left:
            raise KlogError("the store is gone")


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("fails_at", range(1, PUTS + 1))
def test_a_write_that_died_at_any_put_leaves_nothing_for_good(
    fails_at: int, is_there: bool
) -> None:
    store, clock = FailingStore(fails_at, is_there), Clock()
    log = topic_log(store, clock)
    state = created(log)
    with pytest.raises(KlogError, match="the store is gone"):
        append(log, state, ROWS, attempt("append"), OPTIONS)
    assert log.load().version == state.version, "nothing was committed"
    clock.now_ms += 2 * DAY_MS
    done = append(log, state, ROWS, attempt("append"), OPTIONS)
    assert store.requests["put"] >= PUTS
    live = set(done.state.segments["file"].to_pylist())
    clock.now_ms += 2 * DAY_MS
    vacuum(log, attempt("vacuum"))
    left = {path for path in store.files if "/orders-" in path}
    assert left == {
        f"/root/{file.removesuffix('.log')}{suffix}"
        for file in live
        for suffix in (".log", ".index", ".timeindex")
    }
