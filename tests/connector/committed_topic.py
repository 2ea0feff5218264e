"""A klog root with a topic of 3,000 records, and what klog reads of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader

SMALL = {
    "segment.bytes": "20000",
    "index.interval.bytes": "200",
    "compression.type": "uncompressed",
}
BATCHES = {"batch.size": "400"}
START_MS = 1_700_000_000_000


def table(first: int, count: int) -> pa.Table:
    """Return rows of one partition whose values count from `first`, a second apart."""
    numbers = range(first, first + count)
    times = pa.array([START_MS + 1000 * number for number in numbers], pa.timestamp("ms", "UTC"))
    values = [b"%06d" % number * 10 for number in numbers]
    return pa.table({"value": values, "partition": pa.array([0] * count), "timestamp": times})


def state_of(path: Path, topic: str = "t") -> TopicState:
    root = find_root(str(path))
    assert root is not None
    return root.log(topic).load()


def commit(path: Path, build: Any, operation: str) -> TopicState:
    root = find_root(str(path))
    assert root is not None
    log = root.log("t")
    return log.commit(log.load(), build, CommitInfo(random_uuid(), operation, "test"))


def make_root(folder: Path) -> Path:
    """Make a root with a topic of 3,000 records in many indexed segments, some of them shifted."""
    path = folder / "root"
    log = klog.open(str(path))
    log.create_topic("t", 1, SMALL)
    log.append("t", table(0, 1000), options=BATCHES)
    before = state_of(path)
    log.append("t", table(1000, 500), options=BATCHES)
    # A writer that began when there were 1,000 comes last: the offsets in its files are 500 lower.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KlogRoot, "load_to_commit", lambda self, log, cached: before)
        klog.open(str(path)).append("t", table(1500, 1500), options=BATCHES)
    return path


def values(rows: Sequence[dict[str, Any]]) -> list[int]:
    return [int(row["value"][:6]) for row in rows]


def read(path: Path, **options: str) -> list[dict[str, Any]]:
    parsed = parse_read_options({"subscribe": "t", **options})
    root = open_root([str(path)])
    tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    reader = make_reader([str(path)], parsed)
    return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


def between(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }
