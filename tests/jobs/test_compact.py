"""Compactions of klog roots: what stays, and what the report says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from klog.errors import OptionError
from klog.jobs import compact, merge
from klog.jobs.merging import segments_to_merge
from klog.jobs.shared.marking import compiled_kernels
from klog.logformat.cleaning import clean_batches, record_keys
from tests.corpus.clients import Sent
from tests.jobs.compacted_topics import (
    COMPACTED,
    NOW_MS,
    adopted,
    by_loops,
    contended,
    created,
    path_of,
    rows,
    run,
    sent_at,
    survivors,
)
from tests.jobs.partition_bytes import entries_of, nothing_is_wrong, records, segments, state_of
from tests.jobs.written_root import WrittenRoot
from tests.logformat.cleaning.cleaning_rounds import Round, cleaned
from tests.logformat.cleaning.random_logs import START_MS, cuts, logs
from tests.support.batch_bytes import ABORT, COMMIT, GZIP, Record, batch, marker, transactional
from tests.support.kernel_choices import NEVER_KERNELS
from tests.support.legacy_bytes import plain as legacy_plain
from tests.support.legacy_bytes import wrapper
from tests.support.reader_rows import LEVELS, read_partition

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True, params=["columns", "compiled", "little memory"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and write records by way of columns, or by loops that numba compiled."""
    if request.param == "columns":
        monkeypatch.setattr(compiled_kernels, "CLEANING", NEVER_KERNELS)
    else:
        by_loops(monkeypatch, little_memory=request.param == "little memory")


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def test_each_keys_last_record_is_left(root: WrittenRoot) -> None:
    contended(root)
    path = path_of(root)
    before = {partition: records(path, partition) for partition in (0, 1)}
    ends = state_of(path).log_end
    report = run(root)
    for partition in (0, 1):
        left = survivors(before[partition])
        assert records(path, partition) == left
        compacted = report.partitions[partition]
        assert (compacted.records, compacted.records_after) == (180, len(left))
        assert (compacted.cleaned_from, compacted.cleaned_to, compacted.left) == (0, 180, "")
        own = entries_of(path, partition)
        assert compacted.segments_after == len(own)
        assert compacted.size_bytes_after == sum(entry["size_bytes"] for entry in own)
        assert {entry["origin"] for entry in own} == {"compact"}
    assert state_of(path).log_end == ends
    assert state_of(path).cleaned_to == {0: 180, 1: 180}
    nothing_is_wrong(path)


def test_loops_use_no_columns(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nothing but plain records."""
    contended(root)
    before = {partition: records(path_of(root), partition) for partition in (0, 1)}

    def unused(*_: object) -> NoReturn:
        raise AssertionError("columns are made")

    monkeypatch.setattr(record_keys, "decode_parts", unused)
    monkeypatch.setattr(clean_batches, "decode_records", unused)
    by_loops(monkeypatch, little_memory=False)
    run(root)
    monkeypatch.undo()
    for partition in (0, 1):
        assert records(path_of(root), partition) == survivors(before[partition])


def test_a_second_run_changes_nothing(root: WrittenRoot) -> None:
    contended(root)
    run(root)
    before = state_of(path_of(root))
    report = run(root)
    after = state_of(path_of(root))
    assert (after.version, after.segments) == (before.version, before.segments)
    assert [partition.left for partition in report.partitions] == ["nothing is dirty"] * 2


def test_a_dry_run_writes_nothing(root: WrittenRoot) -> None:
    contended(root)
    before = files(path_of(root))
    report = run(root, dry_run=True)
    assert files(path_of(root)) == before
    assert [
        (partition.records, partition.records_after, partition.left)
        for partition in report.partitions
    ] == [
        (180, 0, ""),
        (180, 0, ""),
    ]
    *lines, total = report.lines()
    assert ["\tRecords: 180\t" in line for line in lines] == [True, True]
    assert total.startswith("WouldCompact: 2\t")
    assert report.as_json()["partitions"][1]["cleanedTo"] == 180


def files(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@settings(max_examples=12, deadline=None, phases=(Phase.reuse, Phase.generate))
@given(st.data())
def test_it_leaves_what_the_rules_leave(data: st.DataObject) -> None:
    """Several compactions of adopted logs, byte for byte what `rounds.cleaned` gives."""
    log = data.draw(st.one_of(logs(), logs(codecs=(0, GZIP))))
    parts = data.draw(cuts(log))
    if not parts:
        return
    with tempfile.TemporaryDirectory() as place:
        root = WrittenRoot(f"{place}/root")
        adopted(root, parts, delete_retention_ms="20")
        expected, dirty_from, now_ms = b"".join(segments(path_of(root))), 0, START_MS + 200
        for _ in range(3):
            report = run(root, now_ms=now_ms)
            assert report.partitions[0].left == ""
            cleaning = Round(dirty_from, now_ms=now_ms, retention_ms=20)
            expected = b"".join(cleaned([expected], cleaning))
            assert b"".join(segments(path_of(root))) == expected
            nothing_is_wrong(path_of(root))
            dirty_from = state_of(path_of(root)).log_end[0]
            root.append("t", [Sent(b"a", b"next", now_ms)])
            expected += segments(path_of(root))[-1]
            now_ms += data.draw(st.sampled_from((0, 19, 20, 50)))


def test_a_batch_whose_first_record_was_not_its_oldest(root: WrittenRoot) -> None:
    """Where the first one goes, the batch has another's time, as its header tells it."""
    times = {b"a": START_MS, b"b": START_MS - 20}
    first = batch([Record(n, ms, key, b"") for n, (key, ms) in enumerate(times.items())])
    adopted(root, [first, batch([Record(2, START_MS, b"a", b"later")])])
    assert entries_of(path_of(root))[0]["min_timestamp_ms"] == START_MS
    run(root)
    assert [record.offset for record in records(path_of(root))] == [1, 2]
    assert entries_of(path_of(root))[0]["min_timestamp_ms"] == START_MS - 20
    nothing_is_wrong(path_of(root))


def test_what_is_dirty_is_cleaned_against_what_is_clean(root: WrittenRoot) -> None:
    created(root)
    root.append("t", rows(0, 50, keys=40))
    run(root)
    left = records(path_of(root))
    root.append("t", rows(50, 5, keys=40))
    report = run(root)
    partition = report.partitions[0]
    assert (partition.cleaned_from, partition.cleaned_to) == (50, 55)
    assert 0 < partition.dirty_ratio < 0.4
    assert records(path_of(root)) == survivors([*left, *sent_at(50, rows(50, 5, keys=40))])
    nothing_is_wrong(path_of(root))


def test_a_segment_that_is_both_clean_and_dirty(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge of another klog put both into one segment; what is clean stays clean."""
    monkeypatch.setattr(segments_to_merge, "_can_join", lambda *args: True)
    created(root, segment_bytes="100000")
    root.append("t", rows(0, 30, keys=20))
    run(root)
    root.append("t", rows(30, 30, keys=20))
    before = records(path_of(root))
    merge.run(None, root.location)
    assert len(entries_of(path_of(root))) == 1
    assert run(root).partitions[0].cleaned_from == 30
    assert records(path_of(root)) == survivors(before)
    nothing_is_wrong(path_of(root))


def test_the_ratio_has_to_be_above_the_minimum(root: WrittenRoot) -> None:
    created(root)
    root.append("t", [Sent(b"k%d" % n, b"v" * 50, NOW_MS) for n in range(20)])
    assert run(root).partitions[0].left == ""
    root.append("t", [Sent(b"k%d" % n, b"v" * 50, NOW_MS) for n in range(20)])
    (partition,) = run(root, min_dirty_ratio=None).partitions
    half = partition.dirty_ratio
    assert partition.left == "its dirty ratio is not above the minimum"
    assert 0.45 < half <= 0.5
    assert run(root, min_dirty_ratio=half).partitions[0].left != ""
    assert run(root, min_dirty_ratio=half - 0.001).partitions[0].left == ""


@pytest.mark.parametrize(
    ("now_ms", "is_due"), [(NOW_MS + HOUR_MS, False), (NOW_MS + HOUR_MS + 1, True)]
)
def test_a_record_that_has_waited_long_enough_is_reason_enough(
    root: WrittenRoot, now_ms: int, is_due: bool
) -> None:
    created(root, max_compaction_lag_ms=str(HOUR_MS), min_cleanable_dirty_ratio="1")
    root.append("t", [Sent(b"k", b"1", NOW_MS), Sent(b"k", b"2", NOW_MS + 5)])
    (partition,) = run(root, now_ms=now_ms, min_dirty_ratio=None).partitions
    assert (partition.left == "") == is_due


def test_young_records_are_left_alone(root: WrittenRoot) -> None:
    created(root, min_compaction_lag_ms=str(HOUR_MS))
    for at_ms in (NOW_MS, NOW_MS + 5, NOW_MS + 10):
        root.append("t", [Sent(b"k", b"%d" % at_ms, at_ms), Sent(b"k", b"", at_ms)])
    assert run(root, now_ms=NOW_MS + HOUR_MS - 1).partitions[0].left == "nothing is dirty"
    (partition,) = run(root, now_ms=NOW_MS + HOUR_MS + 5).partitions
    assert (partition.cleaned_to, partition.segments) == (4, 2)
    assert [record.offset for record in records(path_of(root))] == [3, 4, 5]
    assert run(root, now_ms=NOW_MS + HOUR_MS + 10).partitions[0].cleaned_to == 6
    assert [record.offset for record in records(path_of(root))] == [5]
    nothing_is_wrong(path_of(root))


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_transaction_that_ends_after_the_cleaned_part(root: WrittenRoot, kind: int) -> None:
    """Its fate is known all the same: what was aborted takes no committed record's place."""
    own = [
        batch([Record(0, 1000, b"k", b"committed")]),
        transactional(1, 5),
        batch([Record(2, NOW_MS, b"x", b"young")]) + marker(3, 5, kind),
    ]
    adopted(root, own, min_compaction_lag_ms=str(HOUR_MS))
    (partition,) = run(root, now_ms=NOW_MS + 1).partitions
    assert (partition.cleaned_to, partition.left) == (2, "")
    left = [record.offset for record in records(path_of(root))]
    assert left == ([0, 2] if kind == ABORT else [1, 2])
    nothing_is_wrong(path_of(root))


def test_tombstones_go_at_a_cleaning_after_their_horizon(root: WrittenRoot) -> None:
    created(root, delete_retention_ms="1000")
    root.append("t", [Sent(b"a", None, NOW_MS), Sent(b"b", b"1", NOW_MS)])
    run(root)
    for later_ms, left in ((999, [0, 1, 2]), (1000, [1, 3])):
        root.append("t", [Sent(b"c", b"1", NOW_MS)])
        run(root, now_ms=NOW_MS + later_ms)
        assert [record.offset for record in records(path_of(root))] == left
        nothing_is_wrong(path_of(root))


def test_tombstones_may_be_kept_for_ever(root: WrittenRoot) -> None:
    created(root, delete_retention_ms=str((1 << 63) - 1))
    root.append("t", [Sent(b"a", None, NOW_MS), Sent(b"b", b"1", NOW_MS)])
    run(root)
    root.append("t", [Sent(b"c", b"1", NOW_MS)])
    run(root, now_ms=1 << 62)
    assert [record.offset for record in records(path_of(root))] == [0, 1, 2]
    nothing_is_wrong(path_of(root))


def test_policies(root: WrittenRoot) -> None:
    for topic, policy in (("a", "compact"), ("b", "delete"), ("c", "compact,delete")):
        root.create(topic, 1, COMPACTED | {"cleanup.policy": policy})
        for _ in range(2):
            root.append(topic, [Sent(b"k", b"v", NOW_MS)])
    assert [partition.topic for partition in run(root).partitions] == ["a", "c"]
    for topic, left in (("a", 1), ("b", 2), ("c", 1)):
        assert len(records(path_of(root), topic=topic)) == left
    with pytest.raises(OptionError, match=r"topic b is not compacted: .*cleanup\.policy=compact"):
        run(root, "b")
    with pytest.raises(OptionError, match="nothere"):
        run(root, "nothere")
    assert [partition.topic for partition in run(root, ["c", "a", "c"]).partitions] == ["c", "a"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"map_bytes": 1000}, "map_bytes: must be at least [0-9]+, got 1000"),
        ({"min_dirty_ratio": float("nan")}, "min_dirty_ratio: must be from 0 to 1, got nan"),
        ({"min_dirty_ratio": 1.5}, "min_dirty_ratio: must be from 0 to 1, got 1.5"),
    ],
)
def test_options_that_cannot_be(root: WrittenRoot, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        run(root, **options)


def test_what_is_no_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a klog root"):
        compact.run(None, str(tmp_path))


def test_segments_that_lose_nothing_are_not_written_again(root: WrittenRoot) -> None:
    created(root)
    root.append(
        "t",
        [Sent(b"a%d" % n, b"%d" % n * 150, NOW_MS) for n in range(60)],
        compression_type="uncompressed",
    )
    before = entries_of(path_of(root))
    assert len(before) > 2
    root.append("t", [Sent(b"a59", b"v" * 100, NOW_MS)])
    (partition,) = run(root).partitions
    after = entries_of(path_of(root))
    assert after[:-2] == before[:-1][: len(after) - 2]
    assert partition.records_after == 60
    nothing_is_wrong(path_of(root))


def test_a_segment_of_which_nothing_is_left(root: WrittenRoot) -> None:
    """Its neighbours stay, and their sequences are no gap."""
    created(root, segment_bytes="250")
    own = [Sent(b"%d" % n, b"v" * 120, NOW_MS) for n in range(3)]
    root.append("t", own, batch_size="1", compression_type="uncompressed")
    root.append("t", [Sent(b"1", b"v", NOW_MS)])
    assert [entry["next_offset"] for entry in entries_of(path_of(root))] == [1, 2, 3, 4]
    run(root)
    assert [entry["next_offset"] for entry in entries_of(path_of(root))] == [1, 3, 4]
    nothing_is_wrong(path_of(root))


def test_a_log_of_which_nothing_is_left_but_its_end(root: WrittenRoot) -> None:
    """Records of no key from before the policy: 61 bytes say where the log ends."""
    adopted(root, [batch([Record(n, 1000, None, b"v") for n in range(5)])])
    (partition,) = run(root).partitions
    assert (partition.records_after, partition.segments_after, partition.size_bytes_after) == (
        0,
        1,
        61,
    )
    assert state_of(path_of(root)).log_end[0] == 5
    nothing_is_wrong(path_of(root))
    root.append("t", [Sent(b"k", b"v", NOW_MS)])
    run(root)
    assert [record.offset for record in records(path_of(root))] == [5]
    nothing_is_wrong(path_of(root))


def test_a_segment_stands_for_offsets_that_its_file_has_no_more(root: WrittenRoot) -> None:
    """The empty batch at the end of one cleaning is not needed at the next."""
    null = batch([Record(1, 1000, None, b"v")])
    adopted(root, [batch([Record(0, 1000, b"a", b"v")]) + null], segment_bytes="120")
    run(root)
    root.append("t", [Sent(b"b", b"v" * 50, NOW_MS)])
    run(root)
    first, _ = entries_of(path_of(root))
    assert (first["base_offset"], first["next_offset"], first["batch_count"]) == (0, 2, 1)
    assert [record.offset for record in records(path_of(root))] == [0, 2]
    nothing_is_wrong(path_of(root))


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats(root: WrittenRoot, magic: int) -> None:
    """Some stay unchanged; wrappers that lose records become batches v2."""
    own = [Record(n, 1000, b"k%d" % (n % 4), b"v%d" % n) for n in range(12)]
    again = Record(12, 1000, b"k3", b"again")
    parts = [
        wrapper(own[:3], magic, GZIP) + legacy_plain(own[3:5], magic),
        wrapper(own[5:9], magic, GZIP),
        wrapper(own[9:11], magic, GZIP) + legacy_plain([own[11], again], magic),
    ]
    adopted(root, parts)
    (partition,) = run(root).partitions
    assert (partition.records, partition.records_after) == (13, 4)
    (entry,) = entries_of(path_of(root))
    assert entry["record_count"] == 4
    assert [(record.offset, record.value) for record in records(path_of(root))] == [
        (8, b"v8"),
        (9, b"v9"),
        (10, b"v10"),
        (12, b"again"),
    ]
    (left,) = segments(path_of(root))
    assert left.endswith(wrapper(own[9:11], magic, GZIP) + legacy_plain([again], magic))
    # A batch v2 cannot say that it has no timestamp type: as with Kafka 4 it says CreateTime.
    of_stayed, times = (-1, [-1] * 4) if magic == 0 else (0, [1000] * 4)
    read = [record for level in LEVELS for record in read_partition([path_of(root)], "t", 0, level)]
    assert [record.timestamp_type for record in read] == [0, *[of_stayed] * 3] * 2
    assert [record.timestamp for record in read] == times * 2
    nothing_is_wrong(path_of(root))
