"""`repair` replaces lost commits, and never overwrites or deletes."""

from __future__ import annotations

import json
from pathlib import Path

import google_crc32c
import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.jobs import repair, verify
from klog.jobs.repairing.repair_topic import put_plan, repair_topic
from tests.corpus.clients import Sent
from tests.jobs.lost_files import TOPIC, lose_commits, written
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return written(tmp_path / "root")


def test_nothing_lost_is_nothing_done(root: WrittenRoot) -> None:
    report = repair.run(None, root.location, dry_run=False)
    assert (report.exit_code, list(report.lines())) == (
        0,
        ["Nothing is lost below the last commits."],
    )


@pytest.mark.parametrize("lost", [(1,), (2, 3), (2, 4), (1, 2, 3, 4)])
def test_what_is_still_on_the_store_is_added_again(
    root: WrittenRoot, lost: tuple[int, ...]
) -> None:
    root.append(TOPIC, [Sent(None, b"x")], 0)
    root.append(TOPIC, [Sent(None, b"x")], 1)
    before = root.state(TOPIC)
    lose_commits(root, *lost)
    assert repair.run(None, root.location).exit_code == 1
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    after = root.state(TOPIC)
    assert after.segments.equals(before.segments)
    assert (after.log_end, after.holes) == (before.log_end, ())
    assert verify.run(None, root.location).findings == ()
    assert repair.run(None, root.location).exit_code == 0


def test_what_is_gone_becomes_a_hole(root: WrittenRoot) -> None:
    root.append(TOPIC, [Sent(None, b"x")], 1)
    before = root.state(TOPIC)
    file = next(
        entry["file"]
        for entry in before.segments.to_pylist()
        if entry["partition"] and entry["base_offset"]
    )
    lose_commits(root, 4)
    Path(root.path(file)).unlink()
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    after = root.state(TOPIC)
    (hole,) = after.holes
    assert (hole.partition, hole.base_offset, hole.next_offset) == (1, 2, 6)
    assert after.log_end == before.log_end
    assert verify.run(None, root.location).findings == ()
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), after)
    assert root.root.log(TOPIC).load_cold(None).holes == after.holes


@pytest.mark.parametrize("lost", [(2,), (0, 1, 3), (5,), (0, 1, 2, 3, 4, 5)])
def test_a_checkpoint_above_raises_the_boundary(root: WrittenRoot, lost: tuple[int, ...]) -> None:
    log, before = root.root.log(TOPIC), root.state(TOPIC)
    checkpoint_writer.write_checkpoint(log, before)
    lose_commits(root, *lost)
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert log.last_expired_version() == 5
    assert root.state(TOPIC).log_end == before.log_end
    root.append(TOPIC, [Sent(None, b"x")])
    assert root.state(TOPIC).version == 7  # The fence is version 6.
    assert verify.run(None, root.location).findings == ()


def test_two_files_that_fit_are_not_guessed_between(root: WrittenRoot) -> None:
    root.append(TOPIC, [Sent(None, b"x")], 1)
    lose_commits(root, 4)
    seen = root.root.log(TOPIC)
    file = next(Path(root.location).glob("orders-1/*-0000000003-*.log"))
    other = file.with_name(f"{file.name[:31]}-00000000000000ff.log")
    other.write_bytes(_another_value(file.read_bytes()))
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 1
    assert file.name in report.topics[TOPIC].problem
    assert other.name in report.topics[TOPIC].problem
    chosen = f"orders-1/{file.name}"
    assert repair.run(None, root.location, use=[chosen], dry_run=False).exit_code == 1
    report = repair.run(None, root.location, TOPIC, use=[chosen], declare_holes=True, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert report.topics[TOPIC].not_added == (f"orders-1/{other.name}",)
    assert chosen in seen.load().segments["file"].to_pylist()


def _another_value(log: bytes) -> bytes:
    """Return a segment that says the same of another producer, with a CRC that holds."""
    changed = bytearray(log)
    changed[43:51] = (7).to_bytes(8, "big")
    changed[17:21] = google_crc32c.value(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def test_a_commit_that_others_put_meanwhile_is_planned_on(root: WrittenRoot) -> None:
    root.append(TOPIC, [Sent(None, b"x")], 1)
    lose_commits(root, 2, 3)
    log = root.root.log(TOPIC)
    plan = repair_topic(log)
    assert repair_topic(log, dry_run=False).commits
    before = log.load()
    assert not put_plan(log, plan)
    assert log.load_cold(None).writes == before.writes


def test_a_commit_that_took_the_place_of_a_lost_one_is_told(root: WrittenRoot) -> None:
    path = Path(root.root.log(TOPIC).paths.commit(2))
    commit = json.loads(path.read_bytes())
    path.write_text(json.dumps({**commit, "writeId": "another"}))
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 1
    assert "commit 2 is write another" in report.topics[TOPIC].problem


def test_a_lost_first_commit_without_a_checkpoint_is_refused(root: WrittenRoot) -> None:
    lose_commits(root, 0)
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 1
    assert "made the topic is lost" in report.topics[TOPIC].problem
    assert not Path(root.root.log(TOPIC).paths.commit(0)).exists()


def test_commits_of_klog_0_1_are_repaired_with_new_write_ids(root: WrittenRoot) -> None:
    root.append(TOPIC, [Sent(None, b"x")], 0)
    for version in range(7):
        path = Path(root.root.log(TOPIC).paths.commit(version))
        commit = json.loads(path.read_bytes())
        commit.pop("previousWriteId", None)
        path.write_text(json.dumps(commit))
    before = root.state(TOPIC)
    lose_commits(root, 3)
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert root.state(TOPIC).segments.equals(before.segments)
