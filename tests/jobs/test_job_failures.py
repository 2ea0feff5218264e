"""Partitions that fail in a job: the report says so, and the others are done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from klog.errors import (
    CommitStateUnknownError,
    CorruptRecordError,
    KlogError,
    UnsupportedFormatError,
)
from klog.jobs import compact, merge, retain
from klog.jobs.compacting import compact_topic, rewrite_segments
from klog.jobs.compacting.compact_report import CompactReport
from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.job_tasks import take_results
from klog.jobs.shared.task_retries import FailedTask
from tests.jobs.compacted_topics import COMPACTED, contended, path_of, rows, run, survivors
from tests.jobs.partition_bytes import entries_of, records, state_of
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_damaged_segment_ends_only_its_own_partition(root: WrittenRoot, damaged: int) -> None:
    """The report says where the damage is, and the other partition is compacted."""
    contended(root)
    path = path_of(root)
    hurt, well = entries_of(path, damaged), records(path, 1 - damaged)
    file = path / hurt[1]["file"]
    flipped(file)
    report = run(root)
    assert report.exit_code == 1
    assert entries_of(path, damaged) == hurt
    assert records(path, 1 - damaged) == survivors(well)
    assert state_of(path).cleaned_to == {1 - damaged: 180}
    partition = report.partitions[damaged]
    assert (partition.left, partition.records_after, report.partitions[1 - damaged].failure) == (
        "",
        0,
        None,
    )
    assert partition.failure is not None
    assert (partition.failure.file, "CRC" in partition.failure.reason) == (str(file), True)
    assert 0 < (partition.failure.position or 0) < file.stat().st_size
    assert "`klog verify --topic t`" in partition.failure.next_step
    lines = list(report.lines())
    assert (
        lines[damaged].count(f"\tFile: {file}\tPosition: {partition.failure.position}\tNext: ") == 1
    )
    assert "Compacted: 1\t" in lines[2]
    assert "\tFailed: 1\t" in lines[2]
    partitions = report.as_json()["partitions"]
    assert partitions[damaged]["failure"]["nextStep"] == partition.failure.next_step
    assert partitions[1 - damaged]["failure"] is None


@pytest.mark.parametrize("job", [compact, merge])
def test_a_file_that_is_gone_ends_only_its_own_partition(root: WrittenRoot, job: Any) -> None:
    """Of a topic and of the root: what comes after it is done too."""
    root.create("s", 1, COMPACTED)
    contended(root)
    for _ in range(2):
        root.append("s", rows(0, 20))
    path = path_of(root)
    file = path / entries_of(path, 0)[0]["file"]
    file.unlink()
    report = run(root) if job is compact else job.run(None, root.location)
    partitions = {
        (partition.topic, partition.partition): partition for partition in report.partitions
    }
    assert report.exit_code == 1
    assert [name for name, partition in partitions.items() if partition.failure] == [("t", 0)]
    failure = partitions["t", 0].failure
    assert failure is not None
    assert failure.file == str(file)
    assert (
        len(entries_of(path, 1)) == partitions["t", 1].segments_after < partitions["t", 1].segments
    )
    assert len(entries_of(path, 0, "s")) < partitions["s", 0].segments


def test_damage_that_only_the_second_half_meets(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    contended(root)
    path = path_of(root)
    kept = entries_of(path, 0)
    done = rewrite_segments.rewrite_group

    def damaged_before(task: rewrite_segments.RewriteTask) -> rewrite_segments.RewrittenGroup:
        if not flips and task.target.partition == 0:
            flips.append(path / kept[-1]["file"])
            flipped(flips[0])
        return done(task)

    flips: list[Path] = []
    monkeypatch.setattr(compact_topic, "rewrite_group", damaged_before)
    report = run(root)
    first, second = report.partitions
    assert first.failure is not None
    assert first.failure.file == str(flips[0])
    assert (second.failure, second.left, report.exit_code) == (None, "", 1)
    assert entries_of(path, 0) == kept
    assert state_of(path).cleaned_to == {1: 180}


def test_a_commit_that_the_store_refuses_ends_only_its_own_partition(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    contended(root)
    path = path_of(root)
    number = state_of(path).version + 1
    blocked = path / f"_klog/topics/t/log/{number:020d}.json"
    done = rewrite_segments.rewrite_group

    def meanwhile(task: rewrite_segments.RewriteTask) -> rewrite_segments.RewrittenGroup:
        """Make a directory in the place of the next commit, and remove it afterwards."""
        if task.target.partition == 0:
            blocked.mkdir(exist_ok=True)
        elif blocked.is_dir():
            blocked.rmdir()
        return done(task)

    monkeypatch.setattr(compact_topic, "rewrite_group", meanwhile)
    report = run(root)
    assert report.partitions[0].failure is not None
    assert (report.partitions[1].failure, report.partitions[1].left) == (None, "")
    assert state_of(path).cleaned_to == {1: 180}


@pytest.mark.parametrize("job", [compact, merge, retain])
def test_a_topic_whose_commits_cannot_be_read_ends_no_other(root: WrittenRoot, job: Any) -> None:
    for topic in ("a", "b"):
        root.create(topic, 1, COMPACTED | {"cleanup.policy": "compact,delete"})
        root.append(topic, rows(0, 3))
    path = path_of(root)
    (path / "_klog" / "topics" / "a" / "log" / f"{1:020}.json").write_bytes(b"{")
    report = job.run(None, root.location)
    assert report.exit_code == 1
    (failed,) = report.failed
    assert (failed.topic, report.as_json()["failedTopics"][0]["topic"]) == ("a", "a")
    assert f"{1:020}.json" in failed.failure.reason
    lines = list(report.lines())
    assert sum(line.startswith("Topic: a\tFailed: ") for line in lines) == 1
    assert "\tFailed: 1\t" in lines[-1]
    assert all(partition.topic == "b" for partition in report.partitions)
    with pytest.raises(KlogError, match=f"{1:020}.json"):
        job.run(None, root.location, "a")


@pytest.mark.parametrize(
    ("error", "file", "step"),
    [
        (CorruptRecordError("bad", 3).in_file("/f.log", "t-0"), "/f.log", "^restore the file from"),
        (CorruptRecordError("bad", 3), None, "^`klog verify --topic t`"),
        (UnsupportedFormatError("newer"), None, "^`klog verify --topic t`"),
        (CommitStateUnknownError("lost"), None, "^look for it with `klog history --topic t`"),
        (KlogError("away"), None, "^fix what it names, then run it again"),
        (ConnectionResetError("away"), None, "^fix what it names, then run it again"),
        (OSError(5, "no", "/f.log"), "/f.log", "^fix what it names, then run it again"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_names_the_next_step(
    error: KlogError | OSError, file: str | None, step: str
) -> None:
    failure = Failure.of(error, "t")
    assert failure.file == file
    assert re.search(step, failure.next_step)


@pytest.mark.parametrize("job", [merge, retain])
def test_a_topic_that_is_named_twice_is_done_once(root: WrittenRoot, job: Any) -> None:
    root.create("t", 1, {"cleanup.policy": "delete", "retention.bytes": "0"})
    for _ in range(2):
        root.append("t", rows(0, 20))
    report = job.run(None, root.location, ["t", "t"], dry_run=True)
    assert [(partition.topic, partition.partition) for partition in report.partitions] == [("t", 0)]


def test_no_password_is_told() -> None:
    url = "http://reader:canary@host/t-0/0.log"
    for error in (
        CorruptRecordError(f"of {url}", 3).in_file(url, "t-0"),
        KlogError(f"see {url}"),
        OSError(5, "no", url),
    ):
        assert "canary" not in str(Failure.of(error, "t"))
        assert "***" in str(Failure.of(error, "t"))
    report = CompactReport("s3://a:canary@b", dry_run=True)
    assert "canary" not in json.dumps(report.as_json())


def test_results_stand_together() -> None:
    first, second = FailedTask(KlogError("1")), FailedTask(KlogError("2"))
    results = iter([1, 2, 3, first, second, 4])
    assert take_results(results, 2) == [1, 2]
    assert take_results(results, 3) is first
    assert list(results) == [4]
