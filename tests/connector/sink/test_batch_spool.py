"""The spool returns batches unchanged, from memory and from disk."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.sink.batch_spool import BatchSpool, SpooledBatch
from klog.errors import KlogError

STEPS = st.lists(st.one_of(st.binary(min_size=1, max_size=9), st.just("spill"), st.just("take")))


@given(STEPS)
def test_batches_come_out_as_they_went_in(steps: list[bytes | str]) -> None:
    """Whichever are spilled, and in whatever order they are taken."""
    file = BytesIO()
    spool = BatchSpool(lambda: file)
    waiting: list[tuple[SpooledBatch, bytes]] = []
    for step in steps:
        if isinstance(step, bytes):
            waiting.append((spool.add(step), step))
        elif step == "spill":
            spool.spill()
            assert spool.memory_bytes == 0
        elif waiting:
            batch, data = waiting.pop(len(waiting) // 2)
            assert list(spool.take([batch])) == [data]
    assert list(spool.take([batch for batch, _ in waiting])) == [data for _, data in waiting]
    assert spool.memory_bytes == 0
    assert file.getvalue() == b"", "the file is truncated when no batch waits in it"


def test_taken_batch_leaves_memory() -> None:
    spool = BatchSpool(BytesIO)
    batches = [spool.add(b"a" * 10), spool.add(b"b" * 5)]
    taken = spool.take(batches)
    assert (next(taken), spool.memory_bytes) == (b"a" * 10, 5)
    assert (next(taken), spool.memory_bytes) == (b"b" * 5, 0)


def test_full_disk_is_an_error_that_names_the_remedy() -> None:
    class FullFile(BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    spool = BatchSpool(FullFile)
    spool.add(b"a")
    with pytest.raises(KlogError, match=r"No space left on device.*TMPDIR"):
        spool.spill()
