"""Compactions that others come between: who was faster wins, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log import topic_vacuum
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs import compact, merge
from klog.jobs.compacting import compact_topic, rewrite_segments
from tests.jobs.compacted_topics import (
    COMPACTED,
    contended,
    created,
    path_of,
    rows,
    run,
    sent_at,
    survivors,
)
from tests.jobs.partition_bytes import entries_of, nothing_is_wrong, records, state_of
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


@pytest.mark.parametrize("job", [compact, merge])
def test_a_vacuum_between_two_commits(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, job: Any
) -> None:
    """It takes the files of the partition that is not committed yet: that commit must not land."""
    contended(root)
    before = {partition: records(path_of(root), partition) for partition in (0, 1)}
    commit = CommitLog.commit
    done: list[str] = []

    def meanwhile(
        log: CommitLog, state: TopicState, build: CommitBuilder, attempt: CommitInfo
    ) -> TopicState:
        after = commit(log, state, build, attempt)
        if attempt.operation != "vacuum" and not done:
            done.append(attempt.operation)
            topic_vacuum.vacuum(log, CommitInfo("vacuum", "vacuum", "a test"), grace_ms=0)
            return log.load(after)
        return after

    monkeypatch.setattr(CommitLog, "commit", meanwhile)
    report = run(root) if job is compact else merge.run(None, root.location)
    assert done
    first, second = report.partitions
    assert first.left == ""
    assert "vacuum has deleted what was not committed" in second.left
    nothing_is_wrong(path_of(root))
    expected = survivors(before[0]) if job is compact else before[0]
    assert records(path_of(root), 0) == expected
    assert records(path_of(root), 1) == before[1]


def test_who_was_faster_wins(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition loses a segment meanwhile: it is reported, and the other one is compacted."""
    contended(root)
    path = path_of(root)
    before = {partition: records(path, partition) for partition in (0, 1)}
    gone = entries_of(path, 1)[1]["base_offset"]
    done = rewrite_segments.rewrite_group

    def meanwhile(task: rewrite_segments.RewriteTask) -> rewrite_segments.RewrittenGroup:
        if task.target.partition == 0:
            root.delete_records("t", {1: gone})
        return done(task)

    monkeypatch.setattr(compact_topic, "rewrite_group", meanwhile)
    report = run(root)
    partitions = report.partitions
    assert partitions[0].left == ""
    assert "were replaced by a concurrent commit; run it again" in partitions[1].left
    assert records(path, 0) == survivors(before[0])
    assert records(path, 1) == [record for record in before[1] if record.offset >= gone]
    assert state_of(path).cleaned_to == {0: 180}
    *lines, total = report.lines()
    assert lines[1].endswith(f"\tLeft: {partitions[1].left}")
    assert total.startswith("Compacted: 1\t")
    nothing_is_wrong(path)
    monkeypatch.undo()
    assert [partition.left for partition in run(root).partitions] == ["nothing is dirty", ""]
    assert records(path, 1) == survivors([record for record in before[1] if record.offset >= gone])


def test_a_topic_that_is_re_created_meanwhile_is_left(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    contended(root)
    done = rewrite_segments.rewrite_group

    def meanwhile(task: rewrite_segments.RewriteTask) -> rewrite_segments.RewrittenGroup:
        written = done(task)
        if state_of(path_of(root)).version < 10:
            root.delete("t")
            root.create("t", 2, COMPACTED)
        return written

    monkeypatch.setattr(compact_topic, "rewrite_group", meanwhile)
    assert all("created again meanwhile" in partition.left for partition in run(root).partitions)
    assert entries_of(path_of(root)) == []


def test_an_append_meanwhile_changes_nothing(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(root)
    root.append("t", rows(0, 60))
    done = rewrite_segments.rewrite_group
    later = rows(60, 5)

    def meanwhile(task: rewrite_segments.RewriteTask) -> rewrite_segments.RewrittenGroup:
        written = done(task)
        if state_of(path_of(root)).log_end[0] == 60:
            root.append("t", later)
        return written

    monkeypatch.setattr(compact_topic, "rewrite_group", meanwhile)
    before = records(path_of(root))
    (partition,) = run(root).partitions
    assert (partition.left, partition.cleaned_to) == ("", 60)
    assert records(path_of(root)) == [*survivors(before), *sent_at(60, later)]
    nothing_is_wrong(path_of(root))
