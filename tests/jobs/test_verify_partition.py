"""What is put together of a partition's segments costs as much as there is in them, and no more."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from klog.connector.commit_log import segment_entries
from klog.connector.producer_ids import MIN_PRODUCER_ID
from klog.jobs.verifying.check_aborted import SegmentTransactions, TransactionData
from klog.jobs.verifying.check_gaps_and_overlaps import PartitionBounds, check_gaps_and_overlaps
from klog.jobs.verifying.check_partition import NeighbourFacts, verify_partition
from klog.jobs.verifying.check_segment import SegmentFacts
from klog.jobs.verifying.check_sequences import SequenceRuns, join_runs
from klog.jobs.verifying.findings import Finding
from klog.logformat.producers.control_records import COMMIT
from tests.support.segment_entry import entry_of

FINDING = Finding("t", 0, "file", "crc", "the batch fails its CRC")


def facts(decided: SegmentTransactions, findings: tuple[Finding, ...] = ()) -> SegmentFacts:
    return SegmentFacts(findings, 1, 1, 1, join_runs([]), has_end=True, transactions=decided)


def test_many_segments_take_no_time() -> None:
    """Each with a transaction that ends there, one that stays open, and with findings."""
    count, entry = 10_000, entry_of("t-0/0.log", 0, 0, 1)
    segments = [
        facts(
            SegmentTransactions(
                {n: (n, COMMIT)},
                {count: [TransactionData("file", 0, n)], -1 - n: [TransactionData("file", 0, n)]},
            ),
            (FINDING,) * 50,
        )
        for n in range(count)
    ]
    together = NeighbourFacts(0)
    begun = time.process_time()
    for number, each in enumerate(segments):
        together.add("t", number, entry, each)
    assert time.process_time() - begun < 2
    assert (len(together.findings), together.total.segments) == (50 * count, count)
    assert list(together.transactions.first_markers) == list(range(count))
    assert len(together.transactions.open_data[count]) == count
    assert len(together.transactions.open_data) == count + 1


@pytest.mark.parametrize(
    ("bounds", "overlaps"),
    [
        ([(0, 10), (10, 20), (20, 30)], []),
        ([(0, 10), (9, 20), (20, 30)], [(1, 9, 9)]),
        ([(0, 10), (5, 30)], [(1, 5, 9)]),
        # One within another; what comes after the larger one overlaps neither.
        ([(0, 20), (5, 8), (20, 30)], [(1, 5, 7)]),
        ([(0, 20), (5, 8), (19, 30)], [(1, 5, 7), (2, 19, 19)]),
    ],
)
def test_offsets_that_two_segments_have(
    bounds: list[tuple[int, int]], overlaps: list[tuple[int, int, int]]
) -> None:
    entries = [entry_of(f"t-0/{n}.log", 0, base, end) for n, (base, end) in enumerate(bounds)]
    findings = check_gaps_and_overlaps(
        PartitionBounds("t", 0, 0, 30), segment_entries.to_table(entries)
    )
    message = "two segments have the offsets {} to {}"
    assert [
        (finding.kind, finding.file, finding.offset, finding.reason) for finding in findings
    ] == [
        ("overlap", f"t-0/{n}.log", first, message.format(first, last))
        for n, first, last in overlaps
    ]


@pytest.mark.parametrize(("base", "is_sound"), [(0, False), (1, True), (100, True)])
def test_what_lay_before_the_first_segment_is_known_at_offset_0_alone(
    base: int, is_sound: bool
) -> None:
    """A producer's sequences that do not begin at 0 are explained by what retention let go."""
    at = np.array([base])
    zero = np.array([0])
    run = SequenceRuns(
        np.array([MIN_PRODUCER_ID]),
        zero,
        np.array([5]),
        np.array([9]),
        at,
        zero,
        zero,
        zero > 0,
        zero,
        zero,
    )
    segment = entry_of("t-0/0.log", 0, base, base + 5)
    together = NeighbourFacts(base)
    known = SegmentFacts((), 1, 5, 1, run, has_end=True, transactions=SegmentTransactions())
    together.add("t", 0, segment, known)
    report = verify_partition(
        PartitionBounds("t", 0, base, base + 5),
        segment_entries.to_table([segment]).combine_chunks(),
        iter([together]),
    )
    assert [finding.kind for finding in report.findings] == ([] if is_sound else ["sequence"])


def test_markers_that_were_met_are_let_go() -> None:
    """Of a partition only the data that no marker has followed is held from task to task."""
    tasks, markers = 50, 2000

    def all_facts() -> Iterator[NeighbourFacts]:
        for number in range(tasks):
            known = {number * markers + n: (number, COMMIT) for n in range(markers)}
            still = {(number + 1) * markers: [TransactionData("file", 0, number, hidden=1)]}
            neighbours = NeighbourFacts(number)
            neighbours.add("t", number, segments[number], facts(SegmentTransactions(known, still)))
            yield neighbours

    segments = [entry_of(f"t-0/{n}.log", 0, n, n + 1) for n in range(tasks)]
    table = segment_entries.to_table(segments).combine_chunks()
    tracemalloc.start()
    try:
        report = verify_partition(PartitionBounds("t", 0, 0, tasks, 0), table, all_facts())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [finding.offset for finding in report.findings] == list(range(tasks - 1))
    assert peak_bytes < 3_000_000
