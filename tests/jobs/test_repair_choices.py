"""`repair` where only the user knows: a lost first commit, partitions, segments that may belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    rewrite_commit,
)
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.errors import CommitConflictError, OptionError
from klog.jobs import merge, repair, verify
from klog.jobs.repairing.lost_topic_changes import NEVER_EXPIRES
from tests.corpus.clients import Sent
from tests.jobs.lost_files import TOPIC, append, lose_commits, written
from tests.jobs.written_root import CONFIG, WrittenRoot

ID = "BAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return written(tmp_path / "root")


def problem(root: WrittenRoot) -> str:
    report = repair.run(None, root.location, TOPIC, dry_run=False)
    assert report.exit_code == 1
    return report.topics[TOPIC].problem


def added_by(root: WrittenRoot, version: int) -> str:
    """Return the one segment that a commit added."""
    commit = root.root.log(TOPIC).read(version)
    assert commit is not None
    (entry,) = commit.actions.add
    return str(entry["file"])


def orphan(root: WrittenRoot, records: int, partition: int) -> str:
    """Return a segment whose commit was not acknowledged."""
    append(root, records, partition)
    version = root.state(TOPIC).version
    file = added_by(root, version)
    lose_commits(root, version)
    return file


@pytest.mark.parametrize("lost", [(0,), (0, 1, 2)])
def test_a_lost_first_commit_is_put_again(root: WrittenRoot, lost: tuple[int, ...]) -> None:
    before = root.state(TOPIC)
    lose_commits(root, *lost)
    assert "--partitions (at least 2)" in problem(root)
    topic_id = before.topic_id
    report = repair.run(
        None, root.location, TOPIC, topic_id=topic_id, partitions=2, config=CONFIG, dry_run=False
    )
    assert report.exit_code == 0, list(report.lines())
    after = root.state(TOPIC)
    assert after.segments.equals(before.segments)
    assert (after.topic_id, after.log_end) == (before.topic_id, before.log_end)
    assert after.config == NEVER_EXPIRES | CONFIG
    assert verify.run(None, root.location).findings == ()
    append(root, 1, 0)


def test_a_new_topic_id_can_be_made(root: WrittenRoot) -> None:
    before = root.state(TOPIC)
    lose_commits(root, 0)
    report = repair.run(None, root.location, TOPIC, topic_id="new", partitions=2, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    after = root.state(TOPIC)
    assert len(after.topic_id) == 22
    assert after.topic_id != before.topic_id
    assert after.config == NEVER_EXPIRES


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"topic_id": "short"}, "--topic-id 'short'"),
        ({"partitions": -1}, "--partitions -1"),
        ({"config": {"retention.ms": "soon"}}, "retention.ms"),
    ],
)
def test_a_wrong_choice_is_refused(
    root: WrittenRoot, choices: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        repair.run(None, root.location, TOPIC, **choices)  # type: ignore[arg-type]


def test_choices_are_about_one_topic(root: WrittenRoot) -> None:
    root.create("payments", 1)
    with pytest.raises(OptionError, match=r"--partitions, --declare-holes: .* --topic"):
        repair.run(None, root.location, partitions=3, declare_holes=True)


def test_lost_partitions_are_given_again(root: WrittenRoot) -> None:
    TopicAdmin(root.root).add_partitions(TOPIC, 4)
    lost = root.state(TOPIC).version
    append(root, 1, 3)
    before = root.state(TOPIC)
    lose_commits(root, lost)
    assert "more partitions than 2. Give --partitions, at least 4" in problem(root)
    assert repair.run(None, root.location, TOPIC, partitions=4, dry_run=False).exit_code == 0
    assert root.state(TOPIC).log_end == before.log_end
    assert root.state(TOPIC).segments.equals(before.segments)


def test_a_quiet_partition_is_asked_about(root: WrittenRoot) -> None:
    """The last append to a partition: no later commit tells that it was there."""
    before = root.state(TOPIC)
    append(root, 1, 1)
    file = added_by(root, 5)
    lose_commits(root, 5)
    assert f"{file} may be from a lost commit" in problem(root)
    assert repair.run(None, root.location, use=[file], dry_run=False).exit_code == 0
    assert root.state(TOPIC).log_end == (before.log_end[0], before.log_end[1] + 1)
    assert verify.run(None, root.location).findings == ()


def test_a_quiet_partition_is_left_out_on_demand(root: WrittenRoot) -> None:
    """A writer that has the state from before the loss goes on from the repaired log."""
    known = root.state(TOPIC)
    file = added_by(root, 5)
    append(root, 1, 1)
    log = root.root.log(TOPIC)
    known = log.load(known)
    lose_commits(root, 5)
    report = repair.run(None, root.location, TOPIC, declare_holes=True, dry_run=False)
    assert (report.exit_code, report.topics[TOPIC].not_added) == (0, (file,))
    assert report.as_json()["topics"][TOPIC]["notAdded"] == [file]
    root.append(TOPIC, [Sent(None, b"stale")], 0, seen=known)
    assert root.state(TOPIC).log_end[0] == 5
    assert verify.run(None, root.location).findings == ()


def test_a_hole_is_declared_only_where_nothing_may_fill_it(root: WrittenRoot) -> None:
    left = orphan(root, 1, 1)
    append(root, 2, 1)
    missing = added_by(root, 6)
    append(root, 1, 1)
    lose_commits(root, 6)
    Path(root.path(missing)).unlink()
    message = problem(root)
    assert left in message
    assert "--declare-holes" in message
    report = repair.run(None, root.location, TOPIC, declare_holes=True, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    (hole,) = root.state(TOPIC).holes
    assert (hole.base_offset, hole.next_offset) == (6, 8)


def test_a_segment_that_is_older_than_the_checkpoint_is_added(root: WrittenRoot) -> None:
    seen = root.state(TOPIC)
    append(root, 1, 0)
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    root.append(TOPIC, [Sent(None, b"late")], 0, seen=seen)
    append(root, 1, 0)
    before = root.state(TOPIC)
    lose_commits(root, 7)
    assert repair.run(None, root.location, TOPIC, dry_run=False).exit_code == 0
    assert root.state(TOPIC).segments.equals(before.segments)


def test_a_segment_that_was_staged_below_the_log_end_is_added(root: WrittenRoot) -> None:
    """It was staged between two losses, where the log end that its writer saw is not sure."""
    append(root, 1, 0)
    lose_commits(root, 5)
    repair.run(None, root.location, dry_run=False)
    seen = root.state(TOPIC)
    append(root, 1, 0)
    root.append(TOPIC, [Sent(None, b"late")], 0, seen=seen)
    append(root, 1, 0)
    before = root.state(TOPIC)
    lose_commits(root, 8)
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert root.state(TOPIC).segments.equals(before.segments)


@pytest.mark.parametrize("kind", ["absent", "live", "damaged"])
def test_only_sound_segments_that_no_commit_names_are_used(root: WrittenRoot, kind: str) -> None:
    append(root, 1, 0)
    file = added_by(root, 4 if kind == "live" else 5)
    lose_commits(root, 5)
    path = Path(root.path(file))
    if kind == "absent":
        path.unlink()
    elif kind == "damaged":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    report = repair.run(None, root.location, use=[file], dry_run=False)
    assert report.exit_code == 1
    assert f"--use: {file} does not exist" in report.topics[TOPIC].problem


def test_unneeded_choices_are_named_in_order(root: WrittenRoot) -> None:
    files = [f"{TOPIC}-1/{number:020}.log" for number in (5, 3, 4)]
    report = repair.run(None, root.location, TOPIC, use=files, topic_id=ID, partitions=7)
    assert report.topics[TOPIC].problem == (
        f"nothing that is lost needs --partitions, --topic-id, {', '.join(sorted(files))}: "
        "leave it out"
    )


def test_segments_that_do_not_fill_the_offsets_are_refused(root: WrittenRoot) -> None:
    left = orphan(root, 1, 0)
    append(root, 3, 0)
    append(root, 1, 0)
    file = added_by(root, 6)
    lose_commits(root, 6)
    report = repair.run(None, root.location, use=[left, file], dry_run=False)
    assert "have 1 offsets of 9 to 11" in report.topics[TOPIC].problem


def test_a_lost_append_that_was_merged_since_is_found(root: WrittenRoot) -> None:
    """The merge names what it removed, so somebody had added it."""
    merge.run(None, root.location)
    before = root.state(TOPIC)
    lose_commits(root, 5)
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert root.state(TOPIC).segments.equals(before.segments)


@pytest.mark.parametrize("lost", ["delete-topic", "create-topic"])
def test_a_topic_that_was_deleted_and_made_again(root: WrittenRoot, lost: str) -> None:
    root.delete(TOPIC)
    root.create(TOPIC, 1)
    append(root, 2, 0)
    before = root.state(TOPIC)
    lose_commits(root, 6 if lost == "delete-topic" else 7)
    if lost == "create-topic":
        assert "--partitions (at least 1) and --topic-id" in problem(root)
        report = repair.run(
            None, root.location, TOPIC, topic_id=before.topic_id, partitions=1, dry_run=False
        )
    else:
        report = repair.run(None, root.location, TOPIC, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    after = root.state(TOPIC)
    assert (after.topic_id, after.log_end) == (before.topic_id, before.log_end)
    assert after.segments.equals(before.segments)
    assert verify.run(None, root.location).findings == ()


def test_a_merge_that_began_before_the_repair_is_refused(root: WrittenRoot) -> None:
    """A segment that it merged became a hole."""
    append(root, 1, 1)
    (missing,) = (file for file in root.files(TOPIC) if f"-1/{2:020}" in file)
    log = root.root.log(TOPIC)
    known = log.load()
    lose_commits(root, 4)
    Path(root.path(missing)).unlink()
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    inputs = [row for row in known.segments.to_pylist() if row["partition"] == 1]
    files = [row["file"] for row in inputs]
    build = rewrite_commit.replace_segments(known.topic_id, known.version, files, [], {})
    with pytest.raises(CommitConflictError):
        log.commit(known, build, CommitInfo("merge", "merge", "a test"))
    assert verify.run(None, root.location).findings == ()
