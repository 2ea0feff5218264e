"""Retention: Kafka's predicates as a table, and what a commit makes of them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from klog.connector.commit_log import commit_builders, commit_log, segment_entries
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OptionError
from klog.jobs import compact, merge, retain
from klog.jobs.merging import segments_to_merge
from klog.jobs.retaining import expired_segments
from klog.jobs.retaining.retain_report import RetainReport
from klog.logformat.topic_config import parse_topic_config
from tests.corpus.clients import Sent
from tests.jobs.partition_bytes import entries_of, nothing_is_wrong, records, state_of
from tests.jobs.written_root import WrittenRoot
from tests.support.segment_entry import entry_of

NOW_MS = 1_700_000_000_000
NONE = -1


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def path_of(root: WrittenRoot) -> Path:
    return Path(root.location)


def run(root: WrittenRoot, topic: Any = None, now_ms: int = NOW_MS, **more: Any) -> RetainReport:
    return retain.run(None, root.location, topic, clock_ms=lambda: now_ms, **more)


def table(*segments: tuple[int, int]) -> pa.Table:
    """Make segments of (size in bytes, largest time)."""
    return segment_entries.to_table(
        {
            **entry_of(f"t-0/{n:020}.log", 0, 10 * n, 10 * n + 10),
            "size_bytes": size,
            "max_timestamp_ms": latest,
        }
        for n, (size, latest) in enumerate(segments)
    )


@pytest.mark.parametrize(
    ("segments", "retention_ms", "retention_bytes", "expected"),
    [
        ((), 0, 0, 0),
        (((10, 0),), NONE, NONE, 0),
        # By time: strictly older, from the oldest on, until one does not qualify.
        (((10, 900),), 100, NONE, 0),
        (((10, 899),), 100, NONE, 1),
        (((10, 899), (10, 899)), 100, NONE, 2),
        (((10, 899), (10, 900), (10, 0)), 100, NONE, 1),
        (((10, 900), (10, 0)), 100, NONE, 0),
        (((10, 1000),), 0, NONE, 0),
        (((10, 999),), 0, NONE, 1),
        (((10, 5000), (10, 0)), 100, NONE, 0),
        (((10, 0),), (1 << 63) - 1, NONE, 0),
        # By size: what is left never falls below the limit.
        (((10, 0), (10, 0), (10, 0)), NONE, 30, 0),
        (((10, 0), (10, 0), (10, 0)), NONE, 29, 0),
        (((10, 0), (10, 0), (10, 0)), NONE, 21, 0),
        (((10, 0), (10, 0), (10, 0)), NONE, 20, 1),
        (((10, 0), (10, 0), (10, 0)), NONE, 10, 2),
        (((10, 0), (10, 0), (10, 0)), NONE, 1, 2),
        (((10, 0), (10, 0), (10, 0)), NONE, 0, 3),
        (((10, 0), (10, 0), (10, 0)), NONE, 31, 0),
        (((50, 0), (10, 0)), NONE, 11, 0),
        (((50, 0), (10, 0)), NONE, 10, 1),
        # Both: size first, and time from there on.
        (((10, 1000), (10, 0), (10, 1000)), 100, 20, 2),
        (((10, 1000), (10, 1000), (10, 1000)), 100, 20, 1),
        # One without a time goes with the next that has one.
        (((10, NONE),), 100, NONE, 0),
        (((10, NONE), (10, 0)), 100, NONE, 2),
        (((10, 0), (10, NONE)), 100, NONE, 1),
        (((10, NONE), (10, 1000)), 100, NONE, 0),
        (((10, 0), (10, NONE), (10, 0), (10, NONE)), 100, NONE, 3),
        (((10, NONE), (10, NONE)), NONE, 10, 1),
    ],
)
def test_what_goes(segments: Any, retention_ms: int, retention_bytes: int, expected: int) -> None:
    assert (
        expired_segments.count_expired(table(*segments), retention_ms, retention_bytes, 1000)
        == expected
    )


def written(root: WrittenRoot, **config: str) -> None:
    """Write two partitions, a segment a second."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    root.create("t", 2, {"retention.ms": "-1", **named})
    for second in range(6):
        for partition in (0, 1):
            rows = [Sent(b"k%d" % n, b"v", NOW_MS + 1000 * second) for n in range(3)]
            root.append("t", rows, partition)


def test_the_log_start_rises_to_what_is_left(root: WrittenRoot) -> None:
    written(root, retention_ms="10000")
    path = path_of(root)
    before = state_of(path)
    report = run(root, now_ms=NOW_MS + 12_001)
    after = state_of(path)
    assert (after.log_start, after.log_end) == ((9, 9), before.log_end)
    assert [entry["base_offset"] for entry in entries_of(path)] == [9, 12, 15]
    assert [record.offset for record in records(path)] == list(range(9, 18))
    (partition, _) = report.partitions
    assert (partition.partition, partition.log_start, partition.segments, partition.records) == (
        0,
        9,
        3,
        9,
    )
    gone = before.segments.slice(0, 3)
    assert partition.size_bytes == sum(gone["size_bytes"].to_pylist())
    # The files stay for readers until vacuum comes.
    assert all((path / file).exists() for file in gone["file"].to_pylist())
    nothing_is_wrong(path)
    again = run(root, now_ms=NOW_MS + 12_001)
    assert (again.topics, again.partitions) == (1, ())
    assert state_of(path).version == after.version


def test_all_of_a_log_may_go(root: WrittenRoot) -> None:
    """Kafka rolls an empty segment first; klog has no active one, and its end stays."""
    written(root, retention_bytes="0")
    run(root)
    after = state_of(path_of(root))
    assert after.log_start == after.log_end == (18, 18)
    assert entries_of(path_of(root)) == []
    nothing_is_wrong(path_of(root))
    root.append("t", [Sent(b"k", b"v", NOW_MS)])
    assert [record.offset for record in records(path_of(root))] == [18]


def test_a_dry_run_writes_nothing(root: WrittenRoot) -> None:
    written(root, retention_ms="10000")
    before = state_of(path_of(root))
    report = run(root, now_ms=NOW_MS + 12_001, dry_run=True)
    assert state_of(path_of(root)).version == before.version
    *lines, total = report.lines()
    assert ["\tLogStart: 9\t" in line for line in lines] == [True, True]
    assert "\tWouldRemove: 6\tRecords: 18\t" in total
    assert report.as_json()["partitions"][0]["logStart"] == 9


def test_a_log_start_amid_a_segment_never_falls(root: WrittenRoot) -> None:
    written(root, retention_ms="10000")
    merge.run(None, root.location)
    root.delete_records("t", {0: 10})
    (partition,) = (
        partition
        for partition in run(root, now_ms=NOW_MS + 16_000).partitions
        if partition.partition == 0
    )
    assert partition.log_start == 18
    assert state_of(path_of(root)).log_start[0] == 18


def test_policies(root: WrittenRoot) -> None:
    for topic, policy in (("a", "compact"), ("b", "delete"), ("c", "compact,delete")):
        root.create(topic, 1, {"cleanup.policy": policy, "retention.ms": "1000"})
        root.append(topic, [Sent(b"k", b"v", NOW_MS)])
    report = run(root, now_ms=NOW_MS + 1001)
    assert [partition.topic for partition in report.partitions] == ["b", "c"]
    assert report.topics == 2
    assert len(records(path_of(root), topic="a")) == 1
    with pytest.raises(OptionError, match="topic a keeps all its keys"):
        run(root, "a")
    with pytest.raises(OptionError, match="nothere"):
        run(root, "nothere")


def test_what_was_compacted_is_let_go_too(root: WrittenRoot) -> None:
    root.create("t", 1, {"cleanup.policy": "compact,delete", "retention.ms": "1000"})
    for value in (b"1", b"2"):
        root.append("t", [Sent(b"k", value, NOW_MS)])
    compact.run(None, root.location, min_dirty_ratio=0, clock_ms=lambda: NOW_MS)
    assert run(root, now_ms=NOW_MS + 1000).partitions == ()
    (partition,) = run(root, now_ms=NOW_MS + 1001).partitions
    assert (partition.log_start, partition.records) == (2, 1)
    nothing_is_wrong(path_of(root))


def test_a_merge_meanwhile_changes_nothing(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is merged across the new log start stays, and reads from there on."""
    written(root, retention_ms="10000")
    monkeypatch.setattr(segments_to_merge, "_RETENTION_DIVISOR", 1)
    done = commit_builders.delete_records

    def meanwhile(topic_id: str, starts: Any, base_version: Any) -> Any:
        merge.run(None, root.location)
        return done(topic_id, starts, base_version)

    monkeypatch.setattr(commit_builders, "delete_records", meanwhile)
    run(root, now_ms=NOW_MS + 12_001)
    after = state_of(path_of(root))
    assert after.log_start == (9, 9)
    assert entries_of(path_of(root))[0]["base_offset"] == 0
    nothing_is_wrong(path_of(root))


@pytest.mark.parametrize("higher", [False, True])
def test_what_was_committed_is_told(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, higher: bool
) -> None:
    """The report leaves out what concurrent commits deleted."""
    written(root, retention_ms="10000")
    planned = run(root, now_ms=NOW_MS + 12_001, dry_run=True).partitions[0]
    own = entries_of(path_of(root))
    start = planned.log_start + 1 if higher else own[0]["next_offset"]
    rest = [entry for entry in own if start < entry["next_offset"] <= planned.log_start]
    assert bool(rest) != higher
    commit = CommitLog.commit

    def meanwhile(log: CommitLog, *args: Any) -> TopicState:
        monkeypatch.undo()
        root.delete_records("t", {0: start})
        return commit(log, *args)

    monkeypatch.setattr(CommitLog, "commit", meanwhile)
    partitions = {
        partition.partition: partition for partition in run(root, now_ms=NOW_MS + 12_001).partitions
    }
    assert partitions[1].segments == planned.segments
    if higher:
        assert list(partitions) == [1]
        return
    assert partitions[0].segments == len(rest) == planned.segments - 1
    assert partitions[0].records == sum(entry["record_count"] for entry in rest)
    assert partitions[0].size_bytes == sum(entry["size_bytes"] for entry in rest)
    assert partitions[0].log_start == planned.log_start


def test_a_topic_that_goes_meanwhile_stops_no_other(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("a", "b"):
        root.create(topic, 1, {"retention.ms": "1000"})
        root.append(topic, [Sent(b"k", b"v", NOW_MS)])
    done = commit_builders.delete_records

    def meanwhile(topic_id: str, starts: Any, base_version: Any) -> Any:
        if root.state("a").topic_id == topic_id:
            root.delete("a")
        return done(topic_id, starts, base_version)

    monkeypatch.setattr(commit_builders, "delete_records", meanwhile)
    report = run(root, now_ms=NOW_MS + 1001)
    assert [partition.topic for partition in report.partitions] == ["b"]
    assert report.exit_code == 0
    assert state_of(path_of(root), "b").log_start == (1,)


@pytest.mark.parametrize(
    ("is_raced", "words"), [(True, "others committed 3 times"), (False, "directory")]
)
def test_a_commit_that_fails_is_told_and_stops_no_other(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, is_raced: bool, words: str
) -> None:
    """Where others win each number, and where the store has a directory at the commit's place."""
    for topic in ("a", "b"):
        root.create(topic, 1, {"retention.ms": "1000"})
        root.append(topic, [Sent(b"k", b"v", NOW_MS)])
    path, before = path_of(root), state_of(path_of(root), "a")
    done = commit_builders.delete_records

    def contended(topic_id: str, starts: Any, base_version: int) -> CommitBuilder:
        build = done(topic_id, starts, base_version)

        def after_others(state: TopicState) -> Actions | None:
            if state.topic_id == before.topic_id and is_raced:
                root.append("a", [Sent(b"k", b"v", NOW_MS + 2000)])
            elif state.topic_id == before.topic_id:
                (path / f"_klog/topics/a/log/{state.version + 1:020d}.json").mkdir()
            return build(state)

        return after_others

    monkeypatch.setattr(commit_log, "MAX_COMMITS", 3)
    monkeypatch.setattr(commit_builders, "delete_records", contended)
    report = run(root, now_ms=NOW_MS + 1001)
    partition, other = report.partitions
    assert (partition.topic, other.topic, other.failure) == ("a", "b", None)
    assert partition.failure is not None
    assert words in partition.failure.reason
    assert (report.exit_code, report.topics) == (1, 1)
    assert state_of(path, "b").log_start == (1,)
    *lines, total = report.lines()
    assert [f"\tNext: {partition.failure.next_step}" in line for line in lines] == [True, False]
    assert "\tRemoved: 1\tRecords: 1\t" in total
    assert "\tFailed: 1\t" in total
    assert report.as_json()["partitions"][0]["failure"]["nextStep"] == partition.failure.next_step
    if is_raced:
        assert state_of(path, "a").log_start == (0,)


def test_a_hundred_thousand_segments_take_no_time() -> None:
    count = 25_000
    segments = segment_entries.to_table(
        {
            **entry_of(f"t-{partition}/{n:020}.log", partition, n, n + 1, "merge"),
            "size_bytes": 100,
            "record_count": 1,
            "max_timestamp_ms": NOW_MS + n,
        }
        for partition in range(4)
        for n in range(count)
    )
    state: Any = SimpleNamespace(
        segments=segments, partitions=4, log_start=(0,) * 4, log_end=(count,) * 4
    )
    config = parse_topic_config({"retention.ms": "1000"})
    begun = time.monotonic()
    going = list(expired_segments.plan_retention("t", state, config, NOW_MS + 1000 + count // 2))
    assert time.monotonic() - begun < 2
    assert [partition.segments for partition in going] == [count // 2] * 4
    assert [partition.log_start for partition in going] == [count // 2] * 4


def test_what_is_no_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a klog root"):
        retain.run(None, str(tmp_path))
