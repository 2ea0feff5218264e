"""Merges: the same records from fewer segments, and a bounded number of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import OptionError
from klog.jobs import merge
from klog.jobs.merging import merge_topic, segments_to_merge
from klog.jobs.merging.merge_report import MergeReport
from klog.jobs.shared.segment_grouping import SegmentLimits
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.logformat.producers.producer_state import ProducerState
from klog.logformat.topic_config import parse_topic_config
from tests.corpus.clients import Sent
from tests.jobs.partition_bytes import entries_of, nothing_is_wrong, records, segments, state_of
from tests.jobs.written_root import WrittenRoot, numbers
from tests.logformat.cleaning.cleaning_rounds import next_offset, scan
from tests.support.batch_bytes import GZIP, Record
from tests.support.legacy_bytes import plain as legacy_plain
from tests.support.legacy_bytes import wrapper

NOW_MS = 1_700_000_000_000
CONFIG = {"segment.bytes": "6000", "index.interval.bytes": "100"}


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def path_of(root: WrittenRoot) -> Path:
    return Path(root.location)


def run(root: WrittenRoot, topic: Any = None, **more: Any) -> MergeReport:
    return merge.run(None, root.location, topic, **more)


def contended(root: WrittenRoot) -> None:
    """Write two partitions in many small segments; some are shifted."""
    root.create("t", 2, CONFIG)
    for partition in (0, 1):
        for first in range(0, 60, 20):
            seen = root.state("t")
            for codec in ("zstd", "uncompressed"):
                rows = numbers(first, 10, NOW_MS)
                root.append("t", rows, partition, seen=seen, compression_type=codec)
    assert max(root.state("t").segments["offset_shift"].to_pylist()) > 0


def producers(path: Path, partition: int) -> Any:
    state = ProducerState()
    for segment in segments(path, partition):
        state.replay(segment, scan(segment))
    return state.snapshot()


def test_bytes_stay_but_for_their_offsets(root: WrittenRoot) -> None:
    """Offsets, CRCs and producers are those of before, and no shift is left."""
    contended(root)
    path = path_of(root)
    before = {
        number: (b"".join(segments(path, number)), producers(path, number)) for number in (0, 1)
    }
    entries = {number: entries_of(path, number) for number in (0, 1)}
    report = run(root)
    for partition in (0, 1):
        data, known = before[partition]
        own = entries_of(path, partition)
        merged = report.partitions[partition]
        assert b"".join(segments(path, partition)) == data
        assert b"".join((path / entry["file"]).read_bytes() for entry in own) == data
        assert producers(path, partition) == known
        assert {entry["offset_shift"] for entry in own} == {0}
        assert len(own) == merged.segments_after < merged.segments == len(entries[partition])
        assert merged.shifted == sum(entry["offset_shift"] != 0 for entry in entries[partition])
        for name in ("record_count", "batch_count", "size_bytes"):
            assert sum(entry[name] for entry in own) == sum(
                entry[name] for entry in entries[partition]
            )
    nothing_is_wrong(path)


def test_a_second_run_changes_nothing(root: WrittenRoot) -> None:
    contended(root)
    run(root)
    before = state_of(path_of(root))
    (partition, _) = run(root).partitions
    assert partition.left == "its segments are large enough"
    assert state_of(path_of(root)).version == before.version


def test_a_dry_run_writes_nothing(root: WrittenRoot) -> None:
    contended(root)
    before = {path: path.read_bytes() for path in path_of(root).rglob("*") if path.is_file()}
    report = run(root, dry_run=True)
    assert {
        path: path.read_bytes() for path in path_of(root).rglob("*") if path.is_file()
    } == before
    assert report.as_json()["partitions"][0]["segmentsAfter"] < 6
    *_, total = report.lines()
    assert total.startswith("WouldMerge: 2\t")


def test_a_stream_stays_at_few_segments(root: WrittenRoot) -> None:
    """Hundreds of commits, merged every so often: few segments, each byte copied a few times."""
    root.create("t", 1, {"segment.bytes": "20000"})
    copied, max_segments = 0, 0
    for number in range(150):
        root.append("t", [Sent(b"k", b"v" * 40, NOW_MS + number)])
        if number % 10 == 9:
            copied += run(root).partitions[0].size_bytes
            max_segments = max(max_segments, len(entries_of(path_of(root))))
    size = sum(entry["size_bytes"] for entry in entries_of(path_of(root)))
    assert max_segments <= size // 10_000 + 8
    assert copied < 8 * size
    assert [record.offset for record in records(path_of(root))] == list(range(150))
    nothing_is_wrong(path_of(root))


LIMITS = SegmentLimits(1000, 80, span_ms=1000)


def entry_of(
    size: int,
    base: int = 0,
    end: int = 10,
    shift: int = 0,
    index: int = 0,
    ms: int = 0,
    producers: int = 1,
) -> Any:
    return {
        "size_bytes": size,
        "base_offset": base,
        "next_offset": end,
        "offset_shift": shift,
        "index_bytes": index,
        "time_index_bytes": 0,
        "producer_ids": range(producers),
        "min_timestamp_ms": ms,
        "max_timestamp_ms": ms,
    }


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([entry_of(5)], []),
        ([entry_of(5, shift=1)], [(0, 1)]),
        ([entry_of(5), entry_of(5)], [(0, 2)]),
        ([entry_of(10), entry_of(5)], []),
        ([entry_of(9), entry_of(5)], [(0, 2)]),
        ([entry_of(100), entry_of(10), entry_of(10)], [(1, 3)]),
        ([entry_of(30), entry_of(10), entry_of(10)], [(0, 3)]),
        ([entry_of(500), entry_of(500), entry_of(500)], [(0, 2)]),
        ([entry_of(501), entry_of(500)], []),
        ([entry_of(5, index=40), entry_of(5, index=40)], [(0, 2)]),
        ([entry_of(5, index=48), entry_of(5, index=40)], []),
        ([entry_of(5, 0, 10), entry_of(5, 10, MAX_RELATIVE_OFFSET + 1)], [(0, 2)]),
        ([entry_of(5, 0, 10), entry_of(5, 10, MAX_RELATIVE_OFFSET + 2)], []),
        ([entry_of(900), entry_of(800, shift=3), entry_of(700)], [(1, 2)]),
        ([entry_of(5, ms=9), entry_of(5, ms=1009)], [(0, 2)]),
        ([entry_of(5, ms=9), entry_of(5, ms=1010)], []),
        ([entry_of(5, producers=50_000), entry_of(5, producers=50_000)], [(0, 2)]),
        ([entry_of(5, producers=50_001), entry_of(5, producers=50_000)], []),
    ],
)
def test_groups(entries: Any, expected: list[tuple[int, int]]) -> None:
    assert [
        (group.start, group.stop) for group in segments_to_merge.groups_to_merge(entries, LIMITS)
    ] == expected


def test_none_reaches_across_what_was_cleaned() -> None:
    entries = [entry_of(5, 10 * n, 10 * n + 10) for n in range(4)]
    assert segments_to_merge.groups_to_merge(entries, LIMITS, cleaned_to=20) == [
        slice(0, 2),
        slice(2, 4),
    ]
    assert segments_to_merge.groups_to_merge(entries, LIMITS, cleaned_to=40) == [slice(0, 4)]


@pytest.mark.parametrize(
    ("config", "span_ms"),
    [
        ({}, 60_480_000),
        ({"retention.ms": "-1"}, 604_800_000),
        ({"retention.ms": "5000"}, 500),
        ({"segment.ms": "100"}, 100),
        ({"cleanup.policy": "compact", "retention.ms": "5000"}, 604_800_000),
    ],
)
def test_old_records_are_not_kept_by_young_ones(config: dict[str, str], span_ms: int) -> None:
    assert segments_to_merge.merge_limits(parse_topic_config(config)).span_ms == span_ms


@settings(max_examples=60)
@given(st.lists(st.integers(1, 1200), max_size=60))
def test_segments_halve_from_one_to_the_next(sizes: list[int]) -> None:
    """What is left is full, or at least twice the next one: so there are few."""
    entries = [entry_of(size, n, n + 1) for n, size in enumerate(sizes)]
    left, done = [], 0
    for group in segments_to_merge.groups_to_merge(entries, LIMITS):
        left += sizes[done : group.start]
        left.append(sum(sizes[group]))
        done = group.stop
        assert left[-1] <= 1000
    left += sizes[done:]
    for size, next_size in pairwise(left):
        assert size >= 2 * next_size or size + next_size > 1000


def test_old_formats_are_copied_too(root: WrittenRoot) -> None:
    own = [Record(n, 1000, b"k%d" % n, b"v") for n in range(8)]
    root.create("t", 1, CONFIG)
    parts = [wrapper(own[:3], 1, GZIP), legacy_plain(own[3:5], 0), wrapper(own[5:], 0, GZIP)]
    base_offsets = [0, *map(next_offset, parts)]
    root.adopt("t", 0, dict(zip(base_offsets, parts, strict=False)))
    run(root)
    assert segments(path_of(root)) == [b"".join(parts)]
    assert entries_of(path_of(root))[0]["record_count"] == 8
    nothing_is_wrong(path_of(root))


def test_who_was_faster_wins(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    contended(root)
    path = path_of(root)
    before = records(path, 0)
    kept = b"".join(segments(path, 1))
    gone = entries_of(path, 1)[1]["base_offset"]
    done = merge_topic.merge_group

    def meanwhile(task: merge_topic.MergeTask) -> Any:
        if task.partition == 0:
            root.delete_records("t", {1: gone})
        return done(task)

    monkeypatch.setattr(merge_topic, "merge_group", meanwhile)
    partitions = run(root).partitions
    assert partitions[0].left == ""
    assert "were replaced by a concurrent commit" in partitions[1].left
    assert partitions[1].segments_after == partitions[1].segments
    assert records(path, 0) == before
    assert kept.endswith(b"".join(segments(path, 1)))
    nothing_is_wrong(path)


def test_a_damaged_segment_ends_only_its_own_partition(root: WrittenRoot) -> None:
    contended(root)
    path = path_of(root)
    kept, well = entries_of(path, 0), records(path, 1)
    file = path / kept[1]["file"]
    file.write_bytes(file.read_bytes()[:-1])
    report = run(root)
    first, second = report.partitions
    assert (report.exit_code, second.failure, second.left) == (1, None, "")
    assert first.failure is not None
    assert (first.failure.file, first.failure.position) == (str(file), file.stat().st_size)
    assert first.segments_after == first.segments
    assert entries_of(path, 0) == kept
    assert len(entries_of(path, 1)) == second.segments_after < second.segments
    assert records(path, 1) == well
    *lines, total = report.lines()
    assert f"\tFile: {file}\tPosition: {first.failure.position}\tNext: " in lines[0]
    assert "Merged: 1\t" in total
    assert "\tFailed: 1\t" in total
    assert report.as_json()["partitions"][0]["failure"]["file"] == str(file)


def test_what_is_not_there_is_refused(root: WrittenRoot, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nothere"):
        run(root, "nothere")
    with pytest.raises(OptionError, match="there is no directory"):
        merge.run(None, str(tmp_path / "other"))
