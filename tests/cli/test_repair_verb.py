"""`klog repair`: its report, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.lost_files import TOPIC, append, lose_commits, lose_format, written
from tests.jobs.written_root import WrittenRoot
from tests.support.klog_command import Klog


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Return a topic without version 4, an append of offsets 2 to 5 to partition 1."""
    damaged = written(tmp_path / "root")
    append(damaged, 1, 1)
    lose_commits(damaged, 4)
    return damaged


def segment(root: WrittenRoot) -> str:
    (path,) = Path(root.location).glob(f"{TOPIC}-1/{2:020}-*.log")
    return f"{TOPIC}-1/{path.name}"


def test_a_dry_run_then_the_repair(klog: Klog, root: WrittenRoot) -> None:
    lines = [
        f"Topic: {TOPIC}\tLost: 4",
        f"Topic: {TOPIC}\tCommit: 4",
        f"\tAdded: {segment(root)}\tOffsets: 2 to 5",
        f"Topic: {TOPIC}\tFence: 7",
        "Not restored: what lost commits set (configs, log starts, a named writer's last batch) "
        "and what lost merges, compactions and restores replaced.",
    ]
    result = klog("repair", "--root", root.location)
    assert (result.code, result.err) == (1, "")
    assert result.out.decode().splitlines() == [
        *lines,
        "This was a dry run: give --execute to put these files.",
    ]
    assert klog("repair", "--root", root.location, "--topic", TOPIC, "--dry-run").out == result.out
    done = klog("repair", "--root", root.location, "--execute")
    assert (done.code, done.out.decode().splitlines()) == (0, lines)
    again = klog("repair", "--root", root.location)
    assert (again.code, again.out) == (0, b"Nothing is lost below the last commits.\n")


def test_the_report_for_machines(klog: Klog, root: WrittenRoot) -> None:
    Path(root.path(segment(root))).unlink()
    result = klog("repair", "--root", root.location, "--json")
    report = json.loads(result.out)
    assert (result.code, report.pop("seconds") >= 0) == (1, True)
    assert report == {
        "root": root.location,
        "dryRun": True,
        "formatFile": None,
        "topics": {
            TOPIC: {
                "lost": [{"first": 4, "last": 4}],
                "topicFile": None,
                "boundary": None,
                "commits": [
                    {
                        "version": 4,
                        "added": [],
                        "removed": [],
                        "holes": [{"partition": 1, "baseOffset": 2, "nextOffset": 6}],
                    }
                ],
                "fence": 7,
                "notAdded": [],
                "missing": [],
                "aboveLastCommit": {},
                "error": None,
            }
        },
    }


def test_a_root_without_its_format(klog: Klog, root: WrittenRoot) -> None:
    lose_format(root)
    assert klog("repair", "--root", root.location).code == 1
    result = klog("repair", "--root", root.location, "--execute", "--cluster-id", "ABC")
    assert result.code == 0, result
    assert b"_klog/format.json" in result.out
    assert klog("topics", "list", "--root", root.location).code == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--execute", "--dry-run"), 2, "--dry-run: not allowed with argument --execute"),
        (("--config", "x"), 2, "'x' is not NAME=VALUE"),
        (("--topic-id", "x", "--topic", TOPIC), 1, "--topic-id 'x' is not a topic id"),
        (("--topic", "a/b"), 1, "'a/b' is not a topic name"),
    ],
)
def test_what_is_refused(
    klog: Klog, root: WrittenRoot, options: tuple[str, ...], code: int, message: str
) -> None:
    result = klog("repair", "--root", root.location, *options)
    assert (result.code, message in result.err) == (code, True), result
    assert not Path(root.root.log(TOPIC).paths.commit(4)).exists()


def test_a_topic_that_cannot_be_repaired(klog: Klog, root: WrittenRoot) -> None:
    lose_commits(root, 0)
    result = klog("repair", "--root", root.location, "--topic", TOPIC, "--execute")
    assert result.code == 1
    assert b"give --partitions (at least 2) and --topic-id" in result.out
