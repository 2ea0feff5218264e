"""Indexes and rolls of logs that a broker wrote, computed from their batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.indexes.abstract_index import max_entries
from klog.logformat.indexes.index_building import Appends, batches_as_appends, empty_indexes
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.offset_index import decode_offset_index, encode_offset_index
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.indexes.time_index import encode_time_index
from klog.logformat.segments.segment_rolling import OpenSegment, RollLimits, plan_rolls
from tests.support.broker_loader.index_updates import index_batches
from tests.support.project import PROJECT

CORPUS = PROJECT / "tests" / "corpus" / "broker-4.2.0"
INTERVALS = (300, 4096)
"""The values of index.interval.bytes in the corpus."""
COORDINATED = ("__cluster_metadata-0", "__transaction_state-0")
"""Their appends have several batches, and the log does not show which."""
WEEK_MS = 7 * 24 * 3600 * 1000
NEVER_MS = (1 << 63) - 1
SUFFIXES = (".index", ".timeindex")


def indexed_logs(*scenes: str) -> list[Path]:
    """Return the logs of some scenes that have both indexes."""
    logs = [log for scene in scenes for log in sorted((CORPUS / scene).rglob("*.log"))]
    return [log for log in logs if all(log.with_suffix(suffix).exists() for suffix in SUFFIXES)]


CLOSED = indexed_logs(
    "records", "jbod", "transactions", "compacted-before", "compacted-after", "compacted-again"
)


def name(path: Path) -> str:
    return str(path.relative_to(CORPUS))[:80]


def scan(log: Path) -> v2.Batches:
    """Scan a log up to the zeros of a preallocated one."""
    data = log.read_bytes()
    try:
        return scan_batches(data, 0, len(data))
    except CorruptRecordError as padding:
        return scan_batches(data, 0, padding.position)


def broker_indexes(log: Path) -> list[bytes]:
    return [log.with_suffix(suffix).read_bytes() for suffix in SUFFIXES]


@pytest.mark.parametrize(
    "log", [log for log in CLOSED if log.parent.name not in COORDINATED], ids=name
)
def test_indexes_of_a_closed_segment(log: Path) -> None:
    rebuilt = [index_batches(scan(log), int(log.stem), interval) for interval in INTERVALS]
    assert broker_indexes(log) in [
        [encode_offset_index(offset_index), encode_time_index(time_index)]
        for offset_index, time_index in rebuilt
    ]


def test_corpus_has_entries_to_compare() -> None:
    filled = [log for log in CLOSED if log.with_suffix(".index").stat().st_size]
    assert len(filled) > 100


@pytest.mark.parametrize("log", [log for log in CLOSED if log.parent.name in COORDINATED], ids=name)
def test_append_of_several_batches_is_indexed_by_its_first_and_last(log: Path) -> None:
    batches = scan(log)
    index = decode_offset_index(log.with_suffix(".index").read_bytes(), int(log.stem))
    assert set(index.positions.tolist()) <= set(batches.starts.tolist())
    assert set(index.offsets.tolist()) <= set((batches.next_offsets - 1).tolist())


def is_preallocated(log: Path) -> bool:
    index = log.with_suffix(".index").read_bytes()
    return len(index) in (512, 4096) and index.endswith(bytes(OFFSET_ENTRY.itemsize))


PREALLOCATED = [log for log in indexed_logs("killed") if is_preallocated(log)]


@pytest.mark.parametrize(
    "log", [log for log in PREALLOCATED if log.parent.name not in COORDINATED], ids=name
)
def test_killed_broker_writes_no_last_time_entry(log: Path) -> None:
    index, time_index = broker_indexes(log)
    appends = batches_as_appends(scan(log))
    opened = [
        empty_indexes(int(log.stem)).with_appends(appends, interval) for interval in INTERVALS
    ]
    assert [index, time_index] in [
        [
            encode_offset_index(indexes.offset_index).ljust(len(index), b"\0"),
            encode_time_index(indexes.time_index).ljust(len(time_index), b"\0"),
        ]
        for indexes in opened
    ]


@pytest.mark.parametrize("log", PREALLOCATED, ids=name)
def test_preallocated_files_have_complete_entries(log: Path) -> None:
    index, time_index = broker_indexes(log)
    assert len(index) == max_entries(len(index), OFFSET_ENTRY.itemsize) * OFFSET_ENTRY.itemsize
    assert len(time_index) == max_entries(len(index), TIME_ENTRY.itemsize) * TIME_ENTRY.itemsize


def partitions(*scenes: str) -> list[Path]:
    """Return the partitions of some scenes that have several segments."""
    paths = [path for scene in scenes for path in sorted((CORPUS / scene).rglob("*-[0-9]*"))]
    return [path for path in paths if path.is_dir() and len(list(path.glob("*.log"))) > 1]


def appends_to(partition: Path) -> Appends:
    data = b"".join(log.read_bytes() for log in sorted(partition.glob("*.log")))
    return batches_as_appends(scan_batches(data, 0, len(data)))


@pytest.mark.parametrize(
    "partition",
    partitions("records", "jbod", "killed", "transactions", "compacted-before"),
    ids=name,
)
def test_plan_rolls_where_the_broker_rolled(partition: Path) -> None:
    base_offsets = [int(log.stem) for log in sorted(partition.glob("*.log"))]
    by_time = partition.name.startswith("txn.marker.first")
    limits = RollLimits(2048, WEEK_MS if by_time else NEVER_MS, 512, 300)
    segment = OpenSegment(base_offsets[0], base_offsets[0])
    plan = plan_rolls(appends_to(partition), segment, limits)
    assert plan.base_offsets.tolist() == base_offsets
