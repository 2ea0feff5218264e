"""Runs of to-files and import-files that are killed at any step, and two of them at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import klog
from tests.jobs.file_rows import directory_rows, hour_table, log_rows, manifest_rows
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "steps"), [("to-files", 50), ("import-files", 30)])
def test_killed_at_any_step_it_loses_and_doubles_nothing(
    tmp_path: Path, job: str, steps: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.killed_files", job, str(tmp_path)],
        env=ENVIRONMENT,
        cwd=PROJECT,
        capture_output=True,
        timeout=600,
        check=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["killed"] for result in results] == [True] * (len(results) - 1) + [False]
    assert len(results) > steps
    assert all(result["right"] for result in results)
    assert all(result["again"] for result in results)


@pytest.mark.slow
@pytest.mark.full
def test_processes_at_once_while_a_writer_appends(tmp_path: Path) -> None:
    """Three copies to one directory and three imports of it, while records come."""
    root, to = tmp_path / "root", tmp_path / "files"
    log = klog.open(str(root))
    log.create_topic("orders", partitions=2)
    log.create_topic("copy", partitions=2)
    log.append("orders", hour_table([0]))
    copy = ["to-files", "--root", str(root), "--topic", "orders", "--to", str(to)]
    copy += ["-o", "maxOffsetsPerTrigger=7"]
    back = ["import-files", "--root", str(root), "--topic", "copy", "--format", "parquet"]
    back += ["--from", str(to / "orders")]
    for _ in range(3):
        assert not any(process.wait() for process in [_verb(copy)])
        running = [_verb(arguments) for arguments in (copy, copy, copy, back, back, back)]
        for number in range(20):
            log.append("orders", hour_table([number % 3, 0, 40]))
        assert [process.wait(timeout=TIMEOUT_SECONDS) for process in running] == [0] * 6
    assert _verb(copy).wait() == 0
    assert _verb(back).wait() == 0
    expected = log_rows(root, "orders")
    assert directory_rows(to / "orders") == manifest_rows(to / "orders") == expected
    assert [{**row, "topic": "orders"} for row in log_rows(root, "copy")] == expected


def _verb(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "klog", *arguments], env=ENVIRONMENT)
