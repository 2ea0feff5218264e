"""`repair` in doubt: it names what it cannot tell, puts nothing, and does what the user says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import klog
from klog.connector.commit_log import (
    checkpoint_writer,
    commit_checks,
    commit_sidecar,
)
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.lost_commit_traces import (
    PartitionDirectories,
    list_partition_directories,
)
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError
from klog.jobs import merge, repair, vacuum, verify
from klog.jobs.repairing import repair_planner
from tests.corpus.clients import Sent
from tests.jobs.lost_files import TOPIC, append, lose_commits
from tests.jobs.written_root import WrittenRoot

Lose = Callable[[WrittenRoot], str]


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Make a topic of two partitions, two appends to each, in versions 1 to 4."""
    root = WrittenRoot(str(tmp_path / "root"))
    root.create(TOPIC, 2)
    for number in range(4):
        append(root, 2, number % 2)
    return root


def names(values: str) -> list[Sent]:
    return [Sent(None, value.encode()) for value in values.split()]


def added_by(root: WrittenRoot, version: int) -> list[str]:
    commit = root.root.log(TOPIC).read(version)
    assert commit is not None
    return [str(entry["file"]) for entry in commit.actions.add]


def files(root: WrittenRoot) -> set[str]:
    return {str(path) for path in Path(root.location).rglob("*") if path.is_file()}


def values(root: WrittenRoot, partition: int = 0) -> list[str]:
    rows = klog.open(root.location).scan(TOPIC, columns=["partition", "value"]).read_all()
    return [row["value"].decode() for row in rows.to_pylist() if row["partition"] == partition]


def an_abandoned_attempt_as_long_as_two_races(root: WrittenRoot) -> str:
    """A, B and C are staged at the same version; the commit of C was not acknowledged."""
    seen = root.state(TOPIC)
    root.append(TOPIC, names("C0 C1 C2 C3 C4"), 0, seen=seen)
    (abandoned,) = added_by(root, 5)
    lose_commits(root, 5)
    root.append(TOPIC, names("A0 A1"), 0, seen=seen)
    root.append(TOPIC, names("B0 B1 B2"), 0, seen=seen)
    append(root, 1, 0)
    lose_commits(root, 5, 6)
    return abandoned


def rolled(root: WrittenRoot) -> list[str]:
    """Append some segments in one commit, version 5, and another commit after it."""
    rows = [Sent(None, b"x" * 500) for _ in range(120)]
    root.append(TOPIC, rows, 0, compression_type="uncompressed")
    append(root, 1, 0)
    return added_by(root, 5)


def one_file_of_some_is_gone(root: WrittenRoot) -> str:
    first, second, *_ = rolled(root)
    lose_commits(root, 5)
    Path(root.path(first)).unlink()
    return second


def one_file_of_some_is_damaged(root: WrittenRoot) -> str:
    first, _, *_ = rolled(root)
    lose_commits(root, 5)
    path = Path(root.path(first))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    return first


def a_merge_whose_inputs_were_vacuumed(root: WrittenRoot) -> str:
    merge.run(None, root.location)
    merged, *_ = added_by(root, 5)
    vacuum.run(None, root.location, grace_ms=0, dry_run=False)
    append(root, 1, 0)
    lose_commits(root, 5)
    return merged


def a_topic_made_again_whose_delete_is_lost(root: WrittenRoot) -> str:
    root.delete(TOPIC)
    root.create(TOPIC, 2)
    root.append(TOPIC, names("n0 n1 n2 n3"), 0)
    (file,) = added_by(root, 7)
    root.append(TOPIC, names("n4 n5"), 0)
    append(root, 1, 0)
    lose_commits(root, 5, 6, 7, 8)
    return file


def a_partition_that_a_lost_commit_made(root: WrittenRoot) -> str:
    TopicAdmin(root.root).add_partitions(TOPIC, 3)
    append(root, 1, 2)
    (file,) = added_by(root, 6)
    append(root, 1, 0)
    lose_commits(root, 5, 6)
    return file


def the_last_commits_above_a_checkpoint(root: WrittenRoot) -> str:
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    for _ in range(3):
        append(root, 1, 0)
    file = added_by(root, 7)[0]
    lose_commits(root, 4, 5, 6, 7)
    return file


def a_brokers_segment_with_gaps(root: WrittenRoot) -> str:
    """It was adopted, as far as its name tells."""
    source = Path(root.path(added_by(root, 1)[0]))
    file = f"{TOPIC}-0/{0:020}.log"
    Path(root.path(file)).write_bytes(source.read_bytes()[:-1])
    lose_commits(root, 2)
    return file


DOUBTS = (
    an_abandoned_attempt_as_long_as_two_races,
    one_file_of_some_is_gone,
    one_file_of_some_is_damaged,
    a_merge_whose_inputs_were_vacuumed,
    a_topic_made_again_whose_delete_is_lost,
    a_partition_that_a_lost_commit_made,
    the_last_commits_above_a_checkpoint,
    a_brokers_segment_with_gaps,
)


@pytest.mark.parametrize("lose", DOUBTS, ids=lambda lose: lose.__name__)
def test_it_names_the_files_and_puts_nothing(root: WrittenRoot, lose: Lose) -> None:
    file = lose(root)
    before = files(root)
    for dry_run in (True, False):
        report = repair.run(None, root.location, dry_run=dry_run)
        assert report.exit_code == 1
        assert file in report.topics[TOPIC].problem
        assert json.loads(json.dumps(report.as_json()))["topics"][TOPIC]["error"]
    assert files(root) == before


def test_races_are_added_in_the_order_that_the_user_says(root: WrittenRoot) -> None:
    seen = root.state(TOPIC)
    root.append(TOPIC, names("A0 A1"), 0, seen=seen)
    root.append(TOPIC, names("B0 B1 B2"), 0, seen=seen)
    used = [*added_by(root, 5), *added_by(root, 6)]
    append(root, 1, 0)
    before = values(root)
    lose_commits(root, 5, 6)
    assert used[0] in repair.run(None, root.location).topics[TOPIC].problem
    assert repair.run(None, root.location, use=used, dry_run=False).exit_code == 0
    assert values(root) == before
    assert verify.run(None, root.location).findings == ()


def test_each_of_two_losses_takes_its_own_segments(root: WrittenRoot) -> None:
    used = []
    for version in (5, 7):
        append(root, 2, 0)
        used += added_by(root, version)
        append(root, 3, 0)
        used += added_by(root, version + 1) if version == 7 else []
    append(root, 1, 0)
    before = root.state(TOPIC)
    lose_commits(root, 5, 7, 8)
    assert repair.run(None, root.location, use=used, dry_run=False).exit_code == 0
    assert root.state(TOPIC).segments.equals(before.segments)


def test_what_follows_a_gap_keeps_its_offsets(root: WrittenRoot) -> None:
    append(root, 2, 0)
    (gone,) = added_by(root, 5)
    append(root, 3, 0)
    (left,) = added_by(root, 6)
    append(root, 1, 0)
    lose_commits(root, 5, 6)
    Path(root.path(gone)).unlink()
    assert left in repair.run(None, root.location).topics[TOPIC].problem
    report = repair.run(None, root.location, TOPIC, use=[left], declare_holes=True, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    state = root.state(TOPIC)
    (hole,) = state.holes
    assert (hole.base_offset, hole.next_offset, state.log_end[0]) == (4, 6, 10)
    assert verify.run(None, root.location).findings == ()


def test_a_merged_segment_takes_the_place_of_what_was_vacuumed(root: WrittenRoot) -> None:
    before = values(root), values(root, 1)
    merge.run(None, root.location)
    merged = added_by(root, 5)
    vacuum.run(None, root.location, grace_ms=0, dry_run=False)
    append(root, 1, 0)
    lose_commits(root, 5)
    report = repair.run(None, root.location, use=merged, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert (values(root)[:-1], values(root, 1)) == before
    assert verify.run(None, root.location).findings == ()


def test_a_merged_segment_takes_no_place_of_segments_that_are_listed_late(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge.run(None, root.location)
    merged = added_by(root, 5)
    append(root, 1, 0)
    lose_commits(root, 5)
    calls = []

    def list_merged_first(log: CommitLog) -> PartitionDirectories:
        calls.append(log)
        directories = list_partition_directories(log)
        if len(calls) > 1:
            return directories
        return [
            (name, [entry for entry in entries if f"{name}/{entry.name}" in merged])
            for name, entries in directories
        ]

    monkeypatch.setattr(repair_planner, "list_partition_directories", list_merged_first)
    report = repair.run(None, root.location, use=merged)
    assert "nothing that is lost needs" in report.topics[TOPIC].problem


def test_a_partition_is_made_again_for_its_segment(root: WrittenRoot) -> None:
    file = a_partition_that_a_lost_commit_made(root)
    report = repair.run(None, root.location, TOPIC, use=[file], dry_run=False)
    assert "Give --partitions, at least 3" in report.topics[TOPIC].problem
    report = repair.run(None, root.location, TOPIC, use=[file], partitions=3, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert values(root, 2) == ["0"]


def test_a_number_far_above_the_others_is_not_filled_up_to(root: WrittenRoot) -> None:
    paths = root.root.log(TOPIC).paths
    commit = json.loads(Path(paths.commit(4)).read_bytes())
    bogus = {key: commit[key] for key in ("format", "since", "writeId", "operation", "engine")}
    bogus |= {"version": 20_000, "timestampMs": now_ms() + 86_400_000}
    Path(paths.commit(20_000)).write_text(json.dumps(bogus))
    problem = repair.run(None, root.location, dry_run=False).topics[TOPIC].problem
    assert "19,995 commits are lost" in problem
    assert paths.commit(20_000) in problem


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"use": ["/abs/file"]}, "--use '/abs/file' is not a segment"),
        ({"use": [f"other-0/{0:020}.log"]}, "is not a segment of the topics to repair"),
        ({"use": [f"{TOPIC}-0/{0:020}.log"] * 2}, "named twice"),
        ({"cluster_id": "x"}, "--cluster-id"),
        ({"topic": "nosuch"}, "there is no topic nosuch"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    root: WrittenRoot, choices: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        repair.run(None, root.location, **choices)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "choices", [{"partitions": 5}, {"topic_id": "new"}, {"config": {"a": "b"}}]
)
def test_choices_that_nothing_needs_are_told(root: WrittenRoot, choices: dict[str, object]) -> None:
    if "config" in choices:
        choices = {"config": {"retention.ms": "1"}}
    report = repair.run(None, root.location, TOPIC, **choices)  # type: ignore[arg-type]
    (flag,) = choices
    assert f"nothing that is lost needs --{flag.replace('_', '-')}" in report.topics[TOPIC].problem


def test_one_topic_does_not_hide_another(root: WrittenRoot) -> None:
    root.create("other", 1)
    log = root.root.log("other")
    name = checkpoint_writer.write_checkpoint(log, root.state("other"))
    path = Path(log.paths.checkpoint(name))
    Path(
        log.paths.checkpoint(name).replace(f"{name.version:020}", f"{name.version + 1:020}")
    ).write_bytes(path.read_bytes())
    lose_commits(root, 3)
    report = repair.run(None, root.location)
    assert report.topics["other"].problem
    assert report.topics[TOPIC].lost


def test_last_commits_that_are_lost_too_are_discarded_only_when_told(root: WrittenRoot) -> None:
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    for _ in range(3):
        append(root, 1, 0)
    lose_commits(root, 4, 5, 6, 7)
    for declare_holes in (False, True):
        report = repair.run(None, root.location, TOPIC, declare_holes=declare_holes, dry_run=False)
        assert "--discard-lost" in report.topics[TOPIC].problem
    report = repair.run(None, root.location, TOPIC, discard_lost=True, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert len(report.as_json()["topics"][TOPIC]["aboveLastCommit"]) == 2
    assert "Discarded: " in "\n".join(report.lines())
    assert root.state(TOPIC).log_end == (4, 4)


def test_a_writer_that_a_lost_vacuum_overtook_is_refused(root: WrittenRoot) -> None:
    """Vacuum deleted what it had staged, and raised the vacuum version."""
    log = root.root.log(TOPIC)
    known = log.load()
    append(root, 1, 0)
    append(root, 1, 0)
    vacuum.run(None, root.location, grace_ms=0, dry_run=False)
    append(root, 1, 0)
    lose_commits(root, 7)
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    with pytest.raises(KlogError, match="vacuum"):
        log.commit(
            log.load(), check_base_version(known.version), CommitInfo("w", "append", "a test")
        )


def check_base_version(base_version: int) -> CommitBuilder:
    def build(state: TopicState) -> Actions:
        commit_checks.check_base_version(state, base_version)
        return Actions()

    return build


def test_an_index_alone_is_no_segment(root: WrittenRoot) -> None:
    (file,) = added_by(root, 1)
    append(root, 1, 0)
    lose_commits(root, 2)
    Path(root.path(file)).rename(Path(root.path(file)).with_suffix(".index"))
    assert file in repair.run(None, root.location, dry_run=False).topics[TOPIC].problem


def test_a_loss_below_the_hole_of_an_earlier_repair(root: WrittenRoot) -> None:
    append(root, 1, 0)
    append(root, 1, 0)
    append(root, 1, 0)
    for version in (6, 5):
        commit = root.root.log(TOPIC).read(version)
        assert commit is not None
        lose_commits(root, version)
        if version == 6:
            Path(root.path(str(commit.actions.add[0]["file"]))).unlink()
        report = repair.run(None, root.location, dry_run=False)
        assert report.exit_code == 0, list(report.lines())
    (hole,) = root.state(TOPIC).holes
    assert (hole.base_offset, root.state(TOPIC).log_end) == (5, (7, 4))


def test_a_large_commit_has_a_sidecar(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_sidecar, "MAX_JSON_BYTES", 100)
    append(root, 1, 0)
    before = root.state(TOPIC)
    lose_commits(root, 3)
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert root.state(TOPIC).segments.equals(before.segments)
    commit = root.root.log(TOPIC).read_without_sidecar(3)
    assert commit is not None
    assert commit.sidecar is not None
