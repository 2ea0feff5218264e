"""What is put together of a partition's segments costs as much as there is in them, and no more."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

from klog.connector.log import entries
from klog.jobs.verifying.aborted import Data, Decided
from klog.jobs.verifying.findings import Finding
from klog.jobs.verifying.partition import NeighbourFacts, put_together
from klog.jobs.verifying.segment import SegmentFacts
from klog.jobs.verifying.sequences import joined
from klog.jobs.verifying.tiling import Extent
from klog.logformat.control import COMMIT
from tests.commits.logs import entry

FINDING = Finding("t", 0, "file", "crc", "the batch fails its CRC")


def facts(decided: Decided, findings: tuple[Finding, ...] = ()) -> SegmentFacts:
    return SegmentFacts(findings, 1, 1, 1, joined([]), ends_known=True, decided=decided)


def test_many_segments_take_no_time() -> None:
    """Each with a transaction that ends there, one that stays open, and with findings."""
    count, one = 10_000, entry("t-0/0.log", 0, 0, 1)
    segments = [
        facts(
            Decided({n: (n, COMMIT)}, {count: [Data("file", 0, n)], -1 - n: [Data("file", 0, n)]}),
            (FINDING,) * 50,
        )
        for n in range(count)
    ]
    together = NeighbourFacts(0)
    begun = time.process_time()
    for number, each in enumerate(segments):
        together.add("t", number, one, each)
    assert time.process_time() - begun < 2
    assert (len(together.findings), together.total.segments) == (50 * count, count)
    assert list(together.decided.first_markers) == list(range(count))
    assert len(together.decided.open[count]) == count
    assert len(together.decided.open) == count + 1


def test_markers_that_were_met_are_let_go() -> None:
    """Of a partition only the data that no marker has followed is held from task to task."""
    tasks, markers = 50, 2000

    def made() -> Iterator[NeighbourFacts]:
        for number in range(tasks):
            known = {number * markers + n: (number, COMMIT) for n in range(markers)}
            still = {(number + 1) * markers: [Data("file", 0, number, hidden=1)]}
            found = NeighbourFacts(number)
            found.add("t", number, segments[number], facts(Decided(known, still)))
            yield found

    segments = [entry(f"t-0/{n}.log", 0, n, n + 1) for n in range(tasks)]
    table = entries.table_of(segments).combine_chunks()
    tracemalloc.start()
    try:
        report = put_together(Extent("t", 0, 0, tasks, 0), table, made())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [one.offset for one in report.findings] == list(range(tasks - 1))
    assert peak_bytes < 3_000_000
