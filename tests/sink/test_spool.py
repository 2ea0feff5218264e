"""The spool: batches come back as they went in, from memory and from disk."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.sink.spool import Kept, Spool
from klog.errors import KlogError

STEPS = st.lists(st.one_of(st.binary(min_size=1, max_size=9), st.just("spill"), st.just("take")))


@given(STEPS)
def test_what_went_in_comes_out(steps: list[bytes | str]) -> None:
    """Whatever was spilled when, and in whatever order it is taken."""
    file = BytesIO()
    spool = Spool(lambda: file)
    waiting: list[tuple[Kept, bytes]] = []
    for step in steps:
        if isinstance(step, bytes):
            waiting.append((spool.add(step), step))
        elif step == "spill":
            spool.spill()
            assert spool.held_bytes == 0
        elif waiting:
            kept, data = waiting.pop(len(waiting) // 2)
            assert list(spool.take([kept])) == [data]
    assert list(spool.take([kept for kept, _ in waiting])) == [data for _, data in waiting]
    assert spool.held_bytes == 0
    assert file.getvalue() == b"", "room on disk is given back when nothing waits there"


def test_a_batch_leaves_memory_when_it_is_taken() -> None:
    spool = Spool(BytesIO)
    kept = [spool.add(b"a" * 10), spool.add(b"b" * 5)]
    taken = spool.take(kept)
    assert (next(taken), spool.held_bytes) == (b"a" * 10, 5)
    assert (next(taken), spool.held_bytes) == (b"b" * 5, 0)


def test_a_disk_that_fails_is_told_with_the_next_step() -> None:
    class Full(BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    spool = Spool(Full)
    spool.add(b"a")
    with pytest.raises(KlogError, match=r"No space left on device.*TMPDIR"):
        spool.spill()
