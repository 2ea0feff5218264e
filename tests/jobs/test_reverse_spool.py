"""What is left of segments, from the end of a log: given from its beginning, on disk or not."""

from __future__ import annotations

import resource
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.jobs.compacting.reverse_spool import ReverseSpool, SpoolFullError
from klog.logformat.batches.rewrite_offsets import BatchRun
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.support.batch_bytes import Record, batch

blocks = st.lists(st.lists(st.integers(0, 200), max_size=3), max_size=4)


def runs_of(block: list[int]) -> list[BatchRun]:
    """Return batches of values of these sizes, at offsets that rise."""
    every = [batch([Record(at, 1000, b"k", bytes(size))]) for at, size in enumerate(block)]
    return [BatchRun(data, scan(data)) for data in every]


@settings(deadline=None)
@given(st.lists(st.tuples(blocks, st.booleans(), st.booleans()), max_size=6), st.booleans())
def test_it_gives_what_it_took_from_the_end(
    segments: list[tuple[list[list[int]], bool, bool]], is_small: bool
) -> None:
    """Some segments are dropped, and at times the spool is drained."""
    with closing(ReverseSpool(64 if is_small else 1 << 20)) as spool:
        held: list[list[int]] = []
        for own, dropped, drained in segments:
            spool.set_savepoint()
            for block in own:
                spool.add(runs_of(block))
            if dropped:
                spool.roll_back()
            else:
                held += own
            if drained:
                check(spool, held)
                held = []
        check(spool, held)


def check(spool: ReverseSpool, held: list[list[int]]) -> None:
    """Drain it: each block that is not empty is one piece, in the order of the log."""
    runs = list(spool.drain())
    assert [run.data for run in runs] == [
        b"".join(run.data for run in runs_of(block)) for block in reversed(held) if block
    ]
    for run in runs:
        assert scan(run.data).headers.tolist() == run.batches.headers.tolist()


def test_it_holds_little_of_what_lies_in_its_file() -> None:
    """However many batches a block has."""
    block = runs_of([1] * 2000)
    with closing(ReverseSpool(1000)) as spool:
        spool.add(block)
        tracemalloc.start()
        for _ in range(20):
            spool.add(block)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 10_000


def test_a_disk_that_takes_no_more_is_told_as_that_alone() -> None:
    """Whatever is still in a buffer then: closing does not raise something else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    (run,) = runs_of([3000])
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(SpoolFullError):
            fill(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill(run: BatchRun) -> None:
    with closing(ReverseSpool(10)) as spool:
        for _ in range(20):
            spool.add([run])
