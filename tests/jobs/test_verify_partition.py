"""What is put together of a partition's segments costs as much as there is in them, and no more."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from klog.connector.log import entries
from klog.connector.sink.identity import LOWEST_ID
from klog.jobs.verifying.aborted import Data, Decided
from klog.jobs.verifying.findings import Finding
from klog.jobs.verifying.partition import NeighbourFacts, put_together
from klog.jobs.verifying.segment import SegmentFacts
from klog.jobs.verifying.sequences import Runs, joined
from klog.jobs.verifying.tiling import Extent, check_tiling
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


@pytest.mark.parametrize(
    ("bounds", "overlaps"),
    [
        ([(0, 10), (10, 20), (20, 30)], []),
        ([(0, 10), (9, 20), (20, 30)], [(1, 9, 9)]),
        ([(0, 10), (5, 30)], [(1, 5, 9)]),
        # One within another; what comes behind the larger one overlaps neither.
        ([(0, 20), (5, 8), (20, 30)], [(1, 5, 7)]),
        ([(0, 20), (5, 8), (19, 30)], [(1, 5, 7), (2, 19, 19)]),
    ],
)
def test_offsets_that_two_segments_have(
    bounds: list[tuple[int, int]], overlaps: list[tuple[int, int, int]]
) -> None:
    some = [entry(f"t-0/{n}.log", 0, base, behind) for n, (base, behind) in enumerate(bounds)]
    found = check_tiling(Extent("t", 0, 0, 30), entries.table_of(some))
    said = "two segments have the offsets {} to {}"
    assert [(one.kind, one.file, one.offset, one.what) for one in found] == [
        ("overlap", f"t-0/{n}.log", first, said.format(first, last)) for n, first, last in overlaps
    ]


@pytest.mark.parametrize(("base", "is_sound"), [(0, False), (1, True), (100, True)])
def test_what_lay_before_the_first_segment_is_known_at_offset_0_alone(
    base: int, is_sound: bool
) -> None:
    """A producer's sequences that do not begin at 0 are explained by what retention let go."""
    at = np.array([base])
    one = np.array([0])
    run = Runs(
        np.array([LOWEST_ID]), one, np.array([5]), np.array([9]), at, one, one, one > 0, one, one
    )
    segment = entry("t-0/0.log", 0, base, base + 5)
    together = NeighbourFacts(base)
    known = SegmentFacts((), 1, 5, 1, run, ends_known=True, decided=Decided())
    together.add("t", 0, segment, known)
    report = put_together(
        Extent("t", 0, base, base + 5),
        entries.table_of([segment]).combine_chunks(),
        iter([together]),
    )
    assert [one.kind for one in report.findings] == ([] if is_sound else ["sequence"])


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
