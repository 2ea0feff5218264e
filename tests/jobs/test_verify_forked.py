"""`verify` tells of commits in the place of lost ones, which no load reads; so does `history`.

A checkpoint stands for versions 0 to 6. Commits 4 to 6 are lost, 7 is there, and a writer whose
state is of version 3 puts its own commit at 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import klog
from klog.cli import main
from klog.connector.commit_log import checkpoint_writer, commit_sidecar
from klog.connector.commit_log import topic_state as states
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import LostCommitError
from klog.jobs import repair, verify
from klog.jobs.verifying.findings import Finding
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot

TOPIC = "orders"
LOST = (4, 5, 6)


class ForkedRoot:
    """The root, with the files that were lost, to be put back one by one."""

    def __init__(self, path: Path) -> None:
        self.written = WrittenRoot(str(path))
        self.stale = self.written.create(TOPIC, 1)
        for number in range(3):
            self.stale = self.append(b"%d" % number)
        state = self.stale
        for number in range(3, 6):
            state = self.append(b"%d" % number)
        checkpoint_writer.write_checkpoint(self.log, state)
        self.append(b"6")
        self.lost: dict[int, bytes] = {}

    @property
    def log(self) -> CommitLog:
        """Return the topic's log, with nothing known of it."""
        return self.written.root.log_to_write(TOPIC)

    @property
    def paths(self) -> TopicPaths:
        """Return the paths of the topic's log."""
        return self.log.paths

    def append(self, value: bytes, seen: TopicState | None = None) -> TopicState:
        """Append one record."""
        return self.written.append(TOPIC, [Sent(None, value)], seen=seen)

    def lose(self) -> None:
        """Lose the commits."""
        for version in LOST:
            path = Path(self.paths.commit(version))
            self.lost[version] = path.read_bytes()
            path.unlink()

    def put_back(self, *versions: int) -> None:
        """Put lost commits back."""
        for version in versions:
            Path(self.paths.commit(version)).write_bytes(self.lost[version])

    def put_boundary(self, version: int) -> None:
        """Put the last expired version."""
        path = Path(self.paths.expiration(version))
        path.parent.mkdir(exist_ok=True)
        path.touch()

    def forks(self) -> list[Finding]:
        """Verify the root, and return what it says of commits in the place of lost ones."""
        report = verify.run(None, self.written.location)
        forks = [finding for finding in report.findings if finding.kind == "fork"]
        assert report.exit_code == (1 if report.findings else 0)
        assert report.versions == {TOPIC: 7}  # The log is loaded, and its segments are verified.
        assert {finding.kind for finding in report.findings} <= {"fork", "lost"}
        return forks

    def values(self) -> list[bytes]:
        """Scan the topic."""
        table = klog.open(self.written.location).scan(TOPIC).read_all()
        return [bytes(value) for value in table["value"].to_pylist()]


@pytest.fixture
def root(tmp_path: Path) -> ForkedRoot:
    return ForkedRoot(tmp_path / "root")


def write_id(path: str) -> str:
    """Return the write id of a commit."""
    return str(json.loads(Path(path).read_bytes())["writeId"])


def segments(state: TopicState) -> list[str]:
    """Return the live segments of a state."""
    return [str(file) for file in state.segments["file"].to_pylist()]


def test_an_acknowledged_commit_that_no_load_reads_is_told(
    root: ForkedRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    root.lose()
    after = root.append(b"forked", root.stale)
    assert after.version == 4
    assert root.values() == [b"%d" % number for number in range(7)]
    path = root.paths.commit(4)
    (finding,) = root.forks()
    assert (finding.topic, finding.file) == (TOPIC, path)
    assert f"commit 4 is write {write_id(path)} (append)" in finding.reason
    assert f"it was write {json.loads(root.lost[4])['writeId']}" in finding.reason
    assert "No load reads it" in finding.reason
    assert segments(after)[-1] in finding.reason
    assert "append the records of the segments again" in finding.next_step
    assert main(["verify", "--root", root.written.location, "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [
        (finding["kind"], finding["file"]) for finding in findings if finding["kind"] != "lost"
    ] == [("fork", path)]


def test_commits_that_are_the_checkpoints_own_are_none(root: ForkedRoot) -> None:
    assert root.forks() == []
    root.lose()
    assert root.forks() == []
    root.put_back(4, 6)
    assert root.forks() == []


def test_each_of_several_is_told(root: ForkedRoot) -> None:
    root.lose()
    after = root.append(b"second", root.append(b"first", root.stale))
    assert [fork.file for fork in root.forks()] == [root.paths.commit(4), root.paths.commit(5)]
    first, second = root.forks()
    assert [segments(after)[-2] in first.reason, segments(after)[-2] in second.reason] == [
        True,
        False,
    ]
    assert segments(after)[-1] in second.reason


def test_segments_that_a_sidecar_names_are_named(
    root: ForkedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.lose()
    with monkeypatch.context() as patch:
        patch.setattr(commit_sidecar, "MAX_JSON_BYTES", 100)
        after = root.append(b"forked", root.stale)
    assert b'"add"' not in Path(root.paths.commit(4)).read_bytes()
    (finding,) = root.forks()
    assert segments(after)[-1] in finding.reason
    (path,) = Path(root.paths.sidecars).iterdir()
    path.unlink()
    (finding,) = root.forks()
    assert f"Its sidecar, which names its segments, cannot be read: {path}" in finding.reason


def test_of_many_segments_some_are_named(root: ForkedRoot) -> None:
    root.lose()
    path = Path(root.paths.commit(4))
    root.append(b"forked", root.stale)
    commit_json = json.loads(path.read_bytes())
    (added,) = commit_json["add"]
    files = [added["file"].replace(added["file"][-20:-4], f"{number:016x}") for number in range(12)]
    path.write_text(json.dumps({**commit_json, "add": [{**added, "file": file} for file in files]}))
    (finding,) = root.forks()
    assert [file in finding.reason for file in files] == [True] * 10 + [False] * 2
    assert finding.reason.endswith(" and 2 more")


def test_what_the_boundary_covers_is_no_fork(root: ForkedRoot) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    root.put_boundary(3)
    assert len(root.forks()) == 1
    root.put_boundary(4)
    assert root.forks() == []


def test_it_is_told_where_the_log_cannot_be_loaded(root: ForkedRoot) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    Path(root.paths.commit(7)).unlink()
    report = verify.run(None, root.written.location)
    assert [(finding.kind, finding.file) for finding in report.findings] == [
        ("lost", root.paths.commit(5)),
        ("fork", root.paths.commit(4)),
    ]


def test_one_that_took_the_checkpoints_own_version_is_told(root: ForkedRoot) -> None:
    root.lose()
    Path(root.paths.commit(7)).unlink()
    state = root.stale
    for number in LOST:
        state = root.append(b"%d again" % number, state)
    report = verify.run(None, root.written.location)
    assert [finding.file for finding in report.findings if finding.kind == "fork"] == [
        root.paths.commit(number) for number in LOST
    ]
    (unloaded,) = [finding for finding in report.findings if finding.kind == "log"]
    assert "one of them was lost and another was put in its place" in unloaded.reason


def test_a_damaged_commit_that_no_load_needs_hides_nothing(root: ForkedRoot) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    path = Path(root.paths.commit(2))
    path.write_bytes(path.read_bytes()[:-9])
    report = verify.run(None, root.written.location)
    assert [finding.kind for finding in report.findings] == ["lost", "log", "fork"]
    assert str(path) in report.findings[1].reason
    assert report.versions == {TOPIC: 7}


def history_down_to(root: ForkedRoot, version: int) -> Iterator[Commit]:
    """Read the history from the last commit down to a version, and return what is below it."""
    history = TopicAdmin(root.written.root).history(TOPIC)
    assert [next(history).version for _ in range(8 - version)] == [*range(7, version - 1, -1)]
    return history


def test_history_does_not_show_it(root: ForkedRoot) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    root.put_back(5, 6)  # Like a restore that overwrites no file.
    assert len(root.forks()) == 1
    history = history_down_to(root, 5)
    with pytest.raises(LostCommitError, match=r"0004\.json: commit 4 is write .*No load reads it"):
        next(history)


def test_history_does_not_show_one_of_a_version_that_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit names the write of the one before it, so the chain goes on down."""
    monkeypatch.setattr(states, "MAX_REMEMBERED_WRITES", 3)
    root = ForkedRoot(tmp_path / "root")
    root.lose()
    root.append(b"forked", root.stale)
    root.put_back(5, 6)
    history = history_down_to(root, 5)
    with pytest.raises(LostCommitError, match=r"0004\.json: commit 4 is write"):
        next(history)


def test_history_ends_at_one_that_the_boundary_covers(root: ForkedRoot) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    root.put_back(5, 6)
    root.put_boundary(4)
    assert list(history_down_to(root, 5)) == []


@pytest.mark.parametrize("restored", [(), (6,), (5, 6)])
def test_repair_does_not_go_over_it(root: ForkedRoot, restored: tuple[int, ...]) -> None:
    root.lose()
    root.append(b"forked", root.stale)
    root.put_back(*restored)
    report = repair.run(None, root.written.location, dry_run=False)
    assert report.exit_code == 1
    assert "commit 4 is write" in report.topics[TOPIC].problem
    assert root.log.last_expired_version() == -1
    root.put_back(*LOST)
    assert repair.run(None, root.written.location, dry_run=False).exit_code == 0
    assert verify.run(None, root.written.location).findings == ()
