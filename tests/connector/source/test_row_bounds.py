"""Bounds of filters leave out what the filter leaves out, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.load_plan import LoadPlan, ResolvedRange
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.row_bounds import ALL_ROWS, RowBounds
from klog.logformat.topic_partition import TopicPartition

RANGES = [
    ResolvedRange(TopicPartition("a", 0), "", 0, 100),
    ResolvedRange(TopicPartition("a", 1), "", 50, 60),
    ResolvedRange(TopicPartition("b", 0), "", 10, 20),
]


def left(bounds: RowBounds) -> list[tuple[str, int, int]]:
    return [(str(r.name), r.start_offset, r.end_offset) for r in bounds.within(RANGES)]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, [("a-0", 0, 100), ("a-1", 50, 60), ("b-0", 10, 20)]),
        ({"topics": ["b", "c"]}, [("b-0", 10, 20)]),
        ({"partitions": [1]}, [("a-1", 50, 60)]),
        ({"partitions": []}, []),
        ({"startOffset": 55}, [("a-0", 55, 100), ("a-1", 55, 60)]),
        ({"endOffset": 15}, [("a-0", 0, 15), ("b-0", 10, 15)]),
        ({"startOffset": 12, "endOffset": 13, "topics": ["b"]}, [("b-0", 12, 13)]),
        ({"startOffset": 100}, []),
        ({"startOffset": -(1 << 63), "endOffset": (1 << 63) - 1},
         [("a-0", 0, 100), ("a-1", 50, 60), ("b-0", 10, 20)]),
    ],
)  # fmt: skip
def test_what_is_left(bounds: dict[str, object], expected: list[tuple[str, int, int]]) -> None:
    assert left(RowBounds.from_json(bounds)) == expected


def test_no_bounds_are_all_rows() -> None:
    assert RowBounds.from_json({}) == ALL_ROWS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    for start in (0, 3, 6):
        times = pa.array(range(1000 + start, 1003 + start), pa.timestamp("ms", "UTC"))
        log.append("t", pa.table({"value": [b"v"] * 3, "timestamp": times}))
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("time_ms", "expected"), [(0, [(0, 9)]), (1004, [(4, 9)]), (1008, [(8, 9)]), (1009, [])]
)
def test_a_time_is_the_first_record_as_late(
    root: Path, time_ms: int, expected: list[tuple[int, int]]
) -> None:
    options = parse_read_options({"subscribe": "t"})

    def bounds_of(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
        return [(r.start_offset, r.end_offset) for r in ranges]

    bounds = RowBounds(start_timestamp_ms=time_ms)
    plan = scan_planner.try_resolve_offsets({"path": str(root), "subscribe": "t"}, options)
    plans: list[LoadPlan | None] = [plan, None]
    for load_plan in plans:
        opened = scan_planner.with_load_ranges([str(root)], load_plan, options, bounds_of, bounds)
        assert opened == expected
