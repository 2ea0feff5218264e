"""`verify` tells of lost commits and a lost description, and goes on with other topics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs import vacuum, verify
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Make two topics of versions 0 to 4."""
    written = WrittenRoot(str(tmp_path / "root"))
    for topic in ("orders", "payments"):
        written.create(topic, 1)
        for number in range(4):
            written.append(topic, [Sent(None, b"%d" % number)])
    return written


def test_lost_commits_are_told_where_the_log_cannot_be_loaded(root: WrittenRoot) -> None:
    log = root.root.log("orders")
    for version in (1, 2):
        Path(log.paths.commit(version)).unlink()
    report = verify.run(None, root.location)
    (finding,) = report.findings
    assert (finding.topic, finding.kind) == ("orders", "lost")
    assert finding.file == log.paths.commit(1)
    assert "commits 1 to 2 are lost" in finding.reason
    assert "klog repair" in finding.next_step
    assert report.versions == {"payments": 4}


def test_lost_commits_are_told_where_a_checkpoint_stands_for_them(root: WrittenRoot) -> None:
    klog_root = find_root(root.location)
    assert klog_root is not None
    log = klog_root.log("orders")
    checkpoint_writer.write_checkpoint(log, log.load())
    Path(log.paths.commit(2)).unlink()
    report = verify.run(None, root.location)
    assert [finding.kind for finding in report.findings] == ["lost"]
    assert report.versions == {"orders": 4, "payments": 4}


def test_a_lost_description_is_told_and_other_topics_are_verified(root: WrittenRoot) -> None:
    Path(root.root.log("orders").paths.description).unlink()
    report = verify.run(None, root.location)
    (finding,) = report.findings
    assert finding.kind == "log"
    assert "topic.json: this file is lost" in finding.reason
    assert "`klog repair`" in finding.reason
    assert "do what the finding says" in finding.next_step
    assert report.versions == {"payments": 4}


@pytest.mark.parametrize("lost", ["commits", "folder"])
@pytest.mark.parametrize("topic", [None, "orders"])
def test_a_topic_of_whose_log_nothing_is_left(
    root: WrittenRoot, lost: str, topic: str | None
) -> None:
    """A rule that deletes what is below `_klog/` leaves the segments."""
    folder = Path(root.root.log("orders").paths.directory)
    shutil.rmtree(folder if lost == "folder" else folder / "log")
    segments = {str(path) for path in Path(root.location).glob("orders-0/*.log")}
    report = verify.run(None, root.location, topic)
    assert [finding.kind for finding in report.findings] == ["above"] * 3
    (step,) = {finding.next_step for finding in report.findings}
    assert "run `klog topics create --topic orders`, then `klog vacuum --topic orders " in step
    assert {str(Path(root.location) / str(finding.file)) for finding in report.findings} < segments
    for execute in (False, True):
        vacuumed = vacuum.run(
            None, root.location, topic, grace_ms=0, dry_run=not execute, discard_lost=execute
        )
        assert vacuumed.exit_code == 1
        (vacuumed_topic,) = (topic for topic in vacuumed.topics if topic.topic == "orders")
        assert len(vacuumed_topic.orphan_files.traces) == 3
        assert "`klog topics create --topic orders`" in vacuumed_topic.error
    assert {str(path) for path in Path(root.location).glob("orders-0/*.log")} == segments


def test_what_is_left_of_a_lost_topic_goes_once_it_is_made_again(root: WrittenRoot) -> None:
    """What was born below the horizon goes, which rises with the log."""
    lost = root.files("orders")
    shutil.rmtree(root.root.log("orders").paths.directory)
    root.create("orders", 1)
    kept = vacuum.run(None, root.location, "orders", grace_ms=0, dry_run=False)
    assert (kept.exit_code, kept.topics[0].orphan_files.files) == (1, {})
    for _ in range(3):
        vacuum.run(None, root.location, "orders", grace_ms=0, dry_run=False, discard_lost=True)
        root.append("orders", [Sent(None, b"new")])
    assert vacuum.run(None, root.location, "orders", grace_ms=0, dry_run=False).exit_code == 0
    assert not set(lost) & {
        f"orders-0/{path.name}" for path in Path(root.location).glob("orders-0/*")
    }
    assert verify.run(None, root.location).findings == ()


def test_a_directory_that_klog_did_not_fill_is_no_lost_topic(root: WrittenRoot) -> None:
    stray = Path(root.location) / "stray-0"
    stray.mkdir()
    (stray / f"{0:020}.log").write_bytes(b"")
    (stray / f"{0:020}-{0:010}-0123456789abcdef.log").write_bytes(b"")
    assert verify.run(None, root.location).findings == ()


def test_a_replaced_commit_is_told_as_well_as_a_lost_one(root: WrittenRoot) -> None:
    """The load needs the one and not the other, for which a checkpoint stands."""
    log = root.root.log("orders")
    checkpoint_writer.write_checkpoint(
        log, replay(TopicState(), [commit for commit in map(log.read, range(3)) if commit])
    )
    path = Path(log.paths.commit(3))
    path.write_text(json.dumps({**json.loads(path.read_text()), "writeId": "another"}))
    Path(log.paths.commit(1)).unlink()
    lost, replaced = verify.run(None, root.location).findings
    assert (lost.kind, lost.file) == ("lost", log.paths.commit(1))
    assert replaced.kind == "log"
    assert f"{path}: commit 3 is write another" in replaced.reason
