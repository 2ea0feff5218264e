"""Klog roots to verify: sound ones of many shapes, and commits that say what their files do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log import (
    append_commit,
    commit_builders,
    rewrite_commit,
    segment_entries,
)
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.sink.task_writer import stage_task
from klog.connector.sink.write_plan import plan_append
from klog.jobs import verify
from klog.jobs.verifying.verify_report import VerifyReport

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL = {"segment.bytes": "2000", "index.interval.bytes": "100", "compression.type": "uncompressed"}
BATCHES = {"batch.size": "300"}
START_MS = 1_700_000_000_000


def rows(count: int, partitions: int = 1, first: int = 0) -> pa.Table:
    """Make rows with everything that a record may have; times go back and forth."""
    numbers = range(first, first + count)
    times = [START_MS + 1000 * (number ^ 3) for number in numbers]
    headers = [[{"key": "h", "value": b"%d" % n}] if n % 3 else None for n in numbers]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.table(
        {
            "key": [b"k%d" % (n % 7) if n % 2 else None for n in numbers],
            "value": [None if n % 5 == 4 else b"%06d" % n * 6 for n in numbers],
            "headers": pa.array(headers, kind),
            "partition": pa.array([n % partitions for n in numbers], pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )


def root_of(path: Path) -> KlogRoot:
    root = find_root(str(path))
    assert root is not None
    return root


def state_of(path: Path, topic: str = "t") -> TopicState:
    return root_of(path).log(topic).load()


def live(path: Path, topic: str = "t") -> list[dict[str, Any]]:
    """Return the entries of the live segments."""
    entries: list[dict[str, Any]] = state_of(path, topic).segments.to_pylist()
    return entries


def commit(
    path: Path, build: CommitBuilder, operation: str = "append", topic: str = "t"
) -> TopicState:
    log = root_of(path).log(topic)
    return log.commit(log.load(), build, CommitInfo(random_uuid(), operation, "test"))


def staged(
    path: Path, rows: pa.Table, options: dict[str, str], name: str = "", number: int = 0
) -> append_commit.StagedSegments:
    """Stage rows of a task for topic t; nothing is committed."""
    root = root_of(path)
    plan = plan_append(root.log("t").paths, state_of(path), options, random_uuid())
    writer = append_commit.Writer(name, number, "", "") if name else None
    task = plan.task_attempt(writer, 0, 0, START_MS)
    return stage_task(plan, writer, task, rows, root.store, root.path).topics["t"]


def commit_staged(
    path: Path,
    done: append_commit.StagedSegments,
    change: Callable[[SegmentEntry], SegmentEntry] = lambda entry: entry,
) -> None:
    """Commit staged segments unchanged, or with changed entries."""
    changed = [change(entry) for entry in done.segments]
    commit(path, append_commit.append(replace(done, segments=changed)))


def rewritten(
    path: Path, entry: SegmentEntry, data: bytes, attempt: str, **change: Any
) -> SegmentEntry:
    """Put a segment of other bytes next to one, and return its entry with its sizes and CRC."""
    first = change.pop("first", entry["base_offset"])
    old = state_of(path).version
    file = str(SegmentPath("t", entry["partition"], first, old, attempt))
    (path / file).write_bytes(data)
    sizes = {"size_bytes": len(data), "index_bytes": 0, "time_index_bytes": 0}
    return {**entry, "file": file, "crc32c": google_crc32c.value(data), **sizes, **change}


def replaced(path: Path, inputs: Sequence[SegmentEntry], outputs: Sequence[SegmentEntry]) -> None:
    """Commit a rewrite."""
    state = state_of(path)
    names = [entry["file"] for entry in inputs]
    commit(
        path,
        rewrite_commit.replace_segments(state.topic_id, state.version, names, outputs, {}),
        "compact" if outputs and outputs[0]["origin"] == "compact" else "merge",
    )


def write_root(path: Path, count: int = 120, **config: str) -> Path:
    """Make a root with a topic t of one partition: several segments with indexes."""
    log = klog.open(str(path))
    options = {name.replace("_", "."): value for name, value in config.items()}
    log.create_topic("t", 1, {**SMALL, **options})
    log.append("t", rows(count), options=BATCHES)
    return path


def many_shapes(path: Path) -> None:
    """Make a root of all that klog writes today."""
    log = klog.open(str(path))
    for codec in CODECS:
        log.create_topic(f"in.{codec}", 3, {**SMALL, "compression.type": codec})
        for first in (0, 100):
            log.append(f"in.{codec}", rows(100, 2, first), options=BATCHES)
    log.create_topic("empty", 4)
    log.create_topic("small", 2)
    log.append("small", rows(3, 2))
    log.create_topic("stamped", 1, {**SMALL, "message.timestamp.type": "LogAppendTime"})
    log.append("stamped", rows(100), options=BATCHES)
    log.create_topic("named", 2, SMALL)
    for version in (0, 1, 5, 32766, 32767, 40000):
        log.append(
            "named",
            rows(40, 2),
            transactional_id="etl",
            transaction_version=version,
            options=BATCHES,
        )
    contended(path, log)
    begun_later(path, log)
    log.create_topic("gone", 1)
    log.append("gone", rows(5))
    log.delete_topic("gone")
    log.create_topic("again", 1)
    log.append("again", rows(50))
    log.delete_topic("again")
    log.create_topic("again", 1)
    log.append("again", rows(5))
    (path / "_klog" / "topics" / "begun").mkdir()


def contended(path: Path, log: Any) -> None:
    """Let two writers begin at once: the second one's offsets are shifted."""
    log.create_topic("contended", 2, SMALL)
    log.append("contended", rows(50, 2), options=BATCHES)
    before = state_of(path, "contended")
    log.append("contended", rows(50, 2), options=BATCHES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KlogRoot, "load_to_commit", lambda self, log, cached: before)
        klog.open(str(path)).append("contended", rows(100, 2), options=BATCHES)
    assert max(state_of(path, "contended").segments["offset_shift"].to_pylist()) > 0


def begun_later(path: Path, log: Any) -> None:
    """Take the first segments of a write out, so that the log begins amid a producer's batches."""
    log.create_topic("later", 1, SMALL)
    log.append("later", rows(200), options=BATCHES)
    state = state_of(path, "later")
    starts = {0: state.segments["base_offset"][2].as_py() + 3}
    commit(path, commit_builders.delete_records(state.topic_id, starts), "delete-records", "later")
    assert (
        segment_entries.rows_of_partition(state_of(path, "later").segments, 0)["base_offset"][
            0
        ].as_py()
        > 0
    )


def kinds(path: Path, *, fast: bool = False) -> Counter[str]:
    """Verify a root, and return the number of findings of each kind."""
    return Counter(finding.kind for finding in verified(path, fast=fast).findings)


def verified(path: Path, *, fast: bool = False) -> VerifyReport:
    return verify.run(None, str(path), fast=fast)
