"""`klog export-log` at the command line; what it writes is held to in tests/jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.written_root import WrittenRoot, numbers
from tests.support.klog_command import Klog

NOW_MS = 1_700_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    written = WrittenRoot(str(tmp_path / "root"))
    for topic in ("a", "b"):
        written.create(topic, 1)
        written.append(topic, numbers(0, 10, NOW_MS), compression_type="uncompressed")
    seen = written.state("b")
    for _ in range(2):
        written.append("b", numbers(10, 10, NOW_MS), seen=seen, compression_type="uncompressed")
    return written


def test_it_prints_a_line_per_partition(klog: Klog, root: WrittenRoot, tmp_path: Path) -> None:
    to = tmp_path / "to"
    arguments = ("export-log", "--root", root.location, "--to", str(to))
    result = klog(*arguments, "--dry-run")
    assert (result.code, result.err, to.exists()) == (0, "", False)
    *_, summary = result.out.decode().splitlines()
    assert summary.startswith("Would export 2 partitions, 4 segments, 40 records, ")
    result = klog(*arguments)
    assert (result.code, result.err) == (0, "")
    a, b, total = result.out.decode().splitlines()
    assert a.startswith(
        "Topic: a\tPartition: 0\tLogStart: 0\tLogEnd: 10\tSegments: 1\tRecords: 10\t"
    )
    assert b.endswith("\tShifted: 1")
    assert total.startswith("Exported 2 partitions, 4 segments, 40 records, ")
    assert f" bytes to {to}, 1 segments shifted in " in total
    result = klog(*arguments)
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith(f"klog: {to} has a-0, b-0 already")


def test_json_and_topics(klog: Klog, root: WrittenRoot, tmp_path: Path) -> None:
    to = tmp_path / "to"
    arguments = ("export-log", "--root", root.location, "--to", str(to), "--json", "--topic", "b")
    result = klog(*arguments)
    report = json.loads(result.out)
    (partition,) = report.pop("partitions")
    size_bytes = sum(path.stat().st_size for path in (to / "b-0").glob("*.log"))
    assert report.pop("seconds") >= 0
    totals = {"segments": 3, "records": 30, "sizeBytes": size_bytes, "shifted": 1, "ended": 0}
    assert report == {"to": str(to), "dryRun": False, **totals}
    assert partition == {"topic": "b", "partition": 0, "logStart": 0, "logEnd": 30, **totals}
    assert sorted(path.name for path in to.iterdir() if path.is_dir()) == ["b-0"]


def test_what_is_refused(klog: Klog, root: WrittenRoot, tmp_path: Path) -> None:
    to = str(tmp_path / "to")
    for arguments, code, words in (
        (("--to", to, "--topic", "c"), 1, "there is no topic c"),
        ((), 2, "--to"),
        (("--to", to, "--root", "other"), 1, "--root: must name one directory"),
        (("--to", "s3://bucket/there"), 1, "on this machine"),
    ):
        result = klog("export-log", "--root", root.location, *arguments)
        assert (result.code, result.out) == (code, b"")
        assert words in result.err
