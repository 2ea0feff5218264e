"""What is left of segments, from the end of a log: given from its beginning, on disk or not."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from klog.jobs.compacting.spool import Spool
from klog.logformat.restamp import Run
from tests.encode import Record, batch
from tests.logformat.cleaning.rounds import scan

blocks = st.lists(st.lists(st.integers(0, 200), max_size=3), max_size=4)


def run_of(value_bytes: int) -> Run:
    data = batch([Record(0, 1000, b"k", bytes(value_bytes))])
    return Run(data, scan(data))


@given(st.lists(st.tuples(blocks, st.booleans(), st.booleans()), max_size=6), st.booleans())
def test_it_gives_what_it_took_from_the_end(
    segments: list[tuple[list[list[int]], bool, bool]], is_small: bool
) -> None:
    """Segments one after the other, of which some are dropped, and all given now and then."""
    with closing(Spool(64 if is_small else 1 << 20)) as spool:
        held: list[list[int]] = []
        for own, dropped, drained in segments:
            spool.mark()
            for block in own:
                spool.add([run_of(size) for size in block])
            if dropped:
                spool.drop()
            else:
                held += own
            if drained:
                expected = [size for block in reversed(held) for size in block]
                found = list(spool.drain())
                assert [run.data for run in found] == [run_of(size).data for size in expected]
                for run in found:
                    assert scan(run.data).headers.tolist() == run.batches.headers.tolist()
                held = []
        assert len(list(spool.drain())) == sum(map(len, held))
