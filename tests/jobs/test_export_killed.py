"""Exports that end before they are done, or outlive their end; and the memory of one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.errors import KlogError
from klog.jobs.exporting.export_directory import open_export_directory
from klog.jobs.exporting.export_partition import stage_partition
from klog.logformat.broker_files.file_names import deleted_directory_name
from klog.logformat.segments.segment_rolling import RollLimits
from klog.logformat.topic_partition import TopicPartition
from tests.jobs.exported_rows import NOW_MS, run
from tests.jobs.written_root import WrittenRoot, numbers
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


@pytest.mark.slow
def test_killed_at_any_step_it_leaves_nothing_half_and_runs_again(
    root: WrittenRoot, tmp_path: Path
) -> None:
    root.create("t", 2)
    root.create("u", 1)
    for topic in ("t", "u"):
        root.append(topic, numbers(0, 20, NOW_MS))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.jobs.killed_export",
            root.location,
            str(tmp_path / "to"),
            "t",
            "u",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=PROJECT,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["killed"] for result in results] == [True] * (len(results) - 1) + [False]
    assert len(results) > 30
    assert all(result["whole"] and (result["again"] or result["done"]) for result in results)
    assert sum(result["done"] for result in results) < 3, (
        "done is what no longer counts as unfinished"
    )
    assert {len(result["mountable"]) for result in results} == {0, 1, 2, 3}


def test_a_segment_is_never_held_whole(root: WrittenRoot, tmp_path: Path) -> None:
    root.create("t", 1, {})
    value = os.urandom(1_000_000)
    rows = [record._replace(value=value) for record in numbers(1, 48, NOW_MS)]
    root.append("t", rows, compression_type="uncompressed")
    del rows
    (tmp_path / "to").mkdir()
    name = TopicPartition("t", 0)
    partition = CommittedRoot(root.root).snapshot().open([name])[name]
    tracemalloc.start()
    try:
        target = open_export_directory(str(tmp_path / "to"))
        done = stage_partition(partition, target, RollLimits(), NOW_MS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.checkpointed.size_bytes > 47_000_000
    assert peak_bytes < 20_000_000


def test_a_task_that_outlives_its_export_is_waited_for(root: WrittenRoot, tmp_path: Path) -> None:
    """It locks its partition, and the next export does not write at the same time."""
    root.create("t", 1, {})
    root.append("t", numbers(0, 3, NOW_MS))
    to = tmp_path / "to"
    staged = to / deleted_directory_name(
        TopicPartition("t", 0),
        hashlib.blake2b(b"klog export-log t-0", digest_size=16).hexdigest(),
    )
    staged.mkdir(parents=True)
    held = os.open(staged, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(KlogError, match="a task of a killed export still writes"):
            run(root, to, "t")
    finally:
        os.close(held)
    assert [partition.topic for partition in run(root, to, "t").partitions] == ["t"]
