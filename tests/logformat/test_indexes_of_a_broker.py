"""Indexes and rolls of logs that a broker wrote, made again from their batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.index import capacity
from klog.logformat.indexing import Appends, appends_of, index_batches, no_entries
from klog.logformat.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.offset_index import decode_offset_index, encode_offset_index
from klog.logformat.rolling import OpenSegment, RollLimits, plan_rolls
from klog.logformat.time_index import ENTRY as TIME_ENTRY
from klog.logformat.time_index import encode_time_index

CORPUS = Path(__file__).parents[1] / "corpus" / "broker-4.2.0"
INTERVALS = (300, 4096)
"""What the topics of the corpus have for index.interval.bytes."""
COORDINATED = ("__cluster_metadata-0", "__transaction_state-0")
"""Their appends are of several batches, which the log does not tell any more."""
WEEK_MS = 7 * 24 * 3600 * 1000
NEVER_MS = (1 << 63) - 1


def segments(*scenes: str) -> list[Path]:
    """List the logs of some scenes that klog reads and that have both indexes."""
    found = [log for scene in scenes for log in sorted((CORPUS / scene).rglob("*.log"))]
    return [log for log in found if all(log.with_suffix(s).exists() for s in SUFFIXES)]


SUFFIXES = (".index", ".timeindex")
CLOSED = segments(
    "records", "jbod", "transactions", "compacted-before", "compacted-after", "compacted-again"
)


def name(path: Path) -> str:
    return str(path.relative_to(CORPUS))[:80]


def batches(log: Path) -> v2.Batches:
    """Scan a log up to the zeros of a preallocated one."""
    data = log.read_bytes()
    try:
        return v2.scan(data, 0, len(data))
    except CorruptRecordError as padding:
        return v2.scan(data, 0, padding.position)


def of_broker(log: Path) -> list[bytes]:
    return [log.with_suffix(suffix).read_bytes() for suffix in SUFFIXES]


@pytest.mark.parametrize(
    "log", [log for log in CLOSED if log.parent.name not in COORDINATED], ids=name
)
def test_a_closed_segment_s_indexes(log: Path) -> None:
    made = [index_batches(batches(log), int(log.stem), interval) for interval in INTERVALS]
    assert of_broker(log) in [
        [encode_offset_index(offset_index), encode_time_index(time_index)]
        for offset_index, time_index in made
    ]


def test_there_are_entries_to_compare() -> None:
    filled = [log for log in CLOSED if log.with_suffix(".index").stat().st_size]
    assert len(filled) > 100


@pytest.mark.parametrize("log", [log for log in CLOSED if log.parent.name in COORDINATED], ids=name)
def test_an_append_of_several_batches_is_indexed_by_its_first_and_last(log: Path) -> None:
    found = batches(log)
    index = decode_offset_index(log.with_suffix(".index").read_bytes(), int(log.stem))
    assert set(index.positions.tolist()) <= set(found.starts.tolist())
    assert set(index.offsets.tolist()) <= set((found.next_offsets - 1).tolist())


def is_preallocated(log: Path) -> bool:
    index = log.with_suffix(".index").read_bytes()
    return len(index) in (512, 4096) and index.endswith(bytes(OFFSET_ENTRY.itemsize))


PREALLOCATED = [log for log in segments("killed") if is_preallocated(log)]


@pytest.mark.parametrize(
    "log", [log for log in PREALLOCATED if log.parent.name not in COORDINATED], ids=name
)
def test_a_killed_broker_left_the_last_time_entry_out(log: Path) -> None:
    index, time_index = of_broker(log)
    appends = appends_of(batches(log))
    made = [no_entries(int(log.stem)).with_appends(appends, interval) for interval in INTERVALS]
    assert [index, time_index] in [
        [
            encode_offset_index(one.offset_index).ljust(len(index), b"\0"),
            encode_time_index(one.time_index).ljust(len(time_index), b"\0"),
        ]
        for one in made
    ]


@pytest.mark.parametrize("log", PREALLOCATED, ids=name)
def test_preallocated_files_have_whole_entries(log: Path) -> None:
    index, time_index = of_broker(log)
    assert len(index) == capacity(len(index), OFFSET_ENTRY.itemsize) * OFFSET_ENTRY.itemsize
    assert len(time_index) == capacity(len(index), TIME_ENTRY.itemsize) * TIME_ENTRY.itemsize


def partitions(*scenes: str) -> list[Path]:
    """List the partitions of some scenes that have several segments."""
    found = [path for scene in scenes for path in sorted((CORPUS / scene).rglob("*-[0-9]*"))]
    return [path for path in found if path.is_dir() and len(list(path.glob("*.log"))) > 1]


def appends_to(partition: Path) -> Appends:
    data = b"".join(log.read_bytes() for log in sorted(partition.glob("*.log")))
    return appends_of(v2.scan(data, 0, len(data)))


@pytest.mark.parametrize(
    "partition",
    partitions("records", "jbod", "killed", "transactions", "compacted-before"),
    ids=name,
)
def test_a_log_rolled_where_the_plan_rolls_it(partition: Path) -> None:
    bases = [int(log.stem) for log in sorted(partition.glob("*.log"))]
    by_time = partition.name.startswith("txn.marker.first")
    limits = RollLimits(2048, WEEK_MS if by_time else NEVER_MS, 512, 300)
    plan = plan_rolls(appends_to(partition), OpenSegment(bases[0], bases[0]), limits)
    assert plan.base_offsets.tolist() == bases
