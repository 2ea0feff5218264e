"""A count is what a consumer gets: real brokers' logs and klog roots, from commits and headers."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector import segment_chunks
from klog.connector.commit_log.commit_builders import delete_records
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import index_narrowing, scan_planner, slice_counting
from klog.connector.source.task_reader import make_reader
from klog.errors import CorruptFileError, OffsetOutOfRangeError, OptionError
from klog.jobs import adopt, merge
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.record_batch import Batches
from tests import golden
from tests.connector.committed_topic import SMALL, between, commit, make_root, state_of
from tests.connector.log_dirs import many, offset_index, write_log
from tests.corpus import SCENES, Scene, scene
from tests.jobs.broker_dirs import copied
from tests.support.batch_bytes import (
    ABORT,
    GZIP,
    ZSTD,
    Record,
    batch,
    marker,
    plain,
    transactional,
)
from tests.support.reader_rows import LEVELS

LOGS = [pytest.param(name, id=name) for name in (*SCENES, *golden.VERSIONS)]


def scene_of(name: str) -> Scene:
    return golden.scene(name) if name in golden.VERSIONS else scene(name)


@cache
def consumed(name: str, level: str) -> dict[tuple[str, int], list[int]]:
    """Return the offsets that a real consumer got, by partition."""
    offsets = defaultdict(list)
    for record in scene_of(name).records():
        if level == "read_uncommitted" or record.read_committed:
            offsets[record.topic, record.partition].append(record.offset)
    return offsets


def count(paths: Sequence[Path], **options: str) -> int:
    parsed = parse_read_options({"assign": '{"t": [0]}', **options})
    directories = [str(path) for path in paths]
    reader = make_reader(directories, parsed)
    counts = scan_planner.count_snapshot(open_root(directories).snapshot(), parsed, reader)
    return sum(counts.values())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", LOGS)
def test_it_is_what_a_consumer_got(name: str, level: str) -> None:
    expected = consumed(name, level)
    for topic, partition in scene_of(name).partitions():
        assign = json.dumps({topic: [partition]})
        got = count(scene_of(name).log_dirs, assign=assign, isolationLevel=level)
        assert got == len(expected[topic, partition]), (topic, partition)


@pytest.mark.parametrize("name", ["transactions", "compacted-after", "2.8.2"])
def test_between_bounds_it_is_what_a_consumer_got(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    monkeypatch.setattr(segment_chunks, "CHUNK_BYTES", 1000)
    for (topic, partition), bounds in scene_of(name).partitions().items():
        expected = consumed(name, "read_uncommitted")[topic, partition]
        length = bounds.high_watermark - bounds.earliest
        for first, end in ((1, 1), (length // 3, length // 2), (length // 2, length - 1)):
            start, stop = bounds.earliest + first, max(bounds.earliest + end, bounds.earliest)
            if start > stop or stop > bounds.high_watermark:
                continue
            got = count(
                scene_of(name).log_dirs, isolationLevel="read_uncommitted",
                assign=json.dumps({topic: [partition]}),
                startingOffsets=json.dumps({topic: {partition: start}}),
                endingOffsets=json.dumps({topic: {partition: stop}}),
            )  # fmt: skip
            assert got == bisect_left(expected, stop) - bisect_left(expected, start)


@pytest.mark.parametrize("name", ["transactions", "compacted-again"])
def test_adopted_it_is_the_same_and_commits_know_it(
    name: str, tmp_path: Path, requests: Counter[str]
) -> None:
    root = copied(name, tmp_path / "log")
    adopt.run(None, str(root), open_transactions="abort")
    log = klog.open(root)
    for (topic, partition), bounds in scene(name).partitions().items():
        if bounds.last_stable_offset < bounds.high_watermark:
            continue  # Its transaction was open, and is aborted now.
        log.count(topic)  # Loads the state.
        for level in LEVELS:
            requests.clear()
            got = log.count(topic, isolation_level=level)[partition]
            assert got == len(consumed(name, level)[topic, partition]), (topic, partition, level)
            if level == "read_committed":
                assert requests["open"] == 0


def test_a_klog_root_is_counted_without_opening_a_file(
    tmp_path: Path, requests: Counter[str]
) -> None:
    path = make_root(tmp_path)
    log = klog.open(path)
    assert log.count("t") == {0: 3000}
    for start, end in ((0, 1), (999, 1001), (1234, 2999), (3000, 3000)):
        requests.clear()
        assert log.count("t", start, end) == {0: end - start}
        assert requests["open"] == 0, "every offset has a record"
    merge.run(None, str(path), "t")
    commit(path, delete_records(state_of(path).topic_id, {0: 777}), "delete-records")
    requests.clear()
    assert log.count("t") == {0: 3000 - 777}
    assert requests["open"] == requests["range"] == 0


def test_a_compacted_segment_is_read_only_where_a_bound_cuts_it(
    tmp_path: Path, requests: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    root = copied("compacted-again", tmp_path / "log")
    adopt.run(None, str(root), open_transactions="abort")
    log = klog.open(root)
    for (topic, partition), bounds in scene("compacted-again").partitions().items():
        expected = consumed("compacted-again", "read_committed")[topic, partition]
        if bounds.last_stable_offset < bounds.high_watermark:
            continue
        log.count(topic)
        for start in range(bounds.earliest, bounds.high_watermark, 23):
            end = min(start + 40, bounds.high_watermark)
            requests.clear()
            got = log.count(topic, {partition: start}, {partition: end})[partition]
            assert got == bisect_left(expected, end) - bisect_left(expected, start)
            assert requests["open"] <= 2, "the first and the last segment"


def test_nothing_is_decompressed_that_a_header_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = [
        batch([Record(n + i, 1, b"k", b"v") for i in range(10)], attributes=ZSTD)
        for n in range(0, 50, 10)
    ]
    gapped = [
        batch([Record(n + i, 1, b"k", b"v") for i in (0, 3, 9)], attributes=GZIP)
        for n in range(50, 100, 10)
    ]
    write_log(tmp_path, {0: [*dense, *gapped]})
    decoded: list[int] = []

    def counted(data: bytes, batches: Batches, *more: Any, **named: Any) -> Any:
        decoded.extend(batches.base_offsets.tolist())
        return decode_parts(data, batches, *more, **named)

    monkeypatch.setattr(slice_counting, "decode_parts", counted)
    assert count([tmp_path]) == 65
    assert count([tmp_path], **between(3, 57)) == 47 + 2
    assert decoded == [50], "a bound cuts it, and offsets are missing"
    assert count([tmp_path], **between(53, 100)) == 2 + 12
    assert decoded == [50, 50]


def test_markers_aborted_and_open_records(tmp_path: Path) -> None:
    log = [
        transactional(0, 5, [b"a", b"b"]), plain(2), marker(3, 5, ABORT), batch(base_offset=4),
        plain(5, [b"c"] * 3), transactional(8, 6), plain(9),
    ]  # fmt: skip
    write_log(tmp_path, {0: log})
    assert count([tmp_path]) == 4
    assert count([tmp_path], isolationLevel="read_uncommitted") == 8
    assert count([tmp_path], **between(1, 6)) == 2


def test_an_index_that_lies_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    path = make_root(tmp_path)
    # As if the commits did not know: each offset here has a record.
    monkeypatch.setattr(
        "klog.connector.source.record_counter._count_by_commits", lambda part: (0, [part])
    )
    for index in path.rglob("*.index"):
        size = index.with_suffix(".log").stat().st_size
        index.write_bytes(offset_index([(1, size // 2), (2, size // 2 + 1)]))
    assert count([path], **between(1100, 2900)) == 1800


def test_a_damaged_header_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(9), 9: many(9, 9)})
    (directory / f"{0:020d}.log").write_bytes(b"".join(many(9))[:-5])
    with pytest.raises(CorruptFileError, match=r"t-0.*00000000000000000000\.log"):
        count([tmp_path])


def test_empty_partitions_count_zero_and_others_are_errors(tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 3, SMALL)
    assert log.count("t") == {0: 0, 1: 0, 2: 0}
    log.append("t", pa.table({"value": [b"v"], "partition": [1]}))
    assert log.count("t") == {0: 0, 1: 1, 2: 0}
    with pytest.raises(OptionError, match="there is no topic u"):
        log.count("u")
    with pytest.raises(OptionError, match="isolation_level: must be one of"):
        log.count("t", isolation_level="serializable")
    with pytest.raises(OffsetOutOfRangeError, match="t-0: start 5 is out of range"):
        log.count("t", start=5)


@pytest.mark.parametrize(
    ("attributes", "count", "reason"),
    [
        (0, 1 << 22, "4194304 records in 0 bytes"),
        (0, (1 << 22) + 1, "a batch of 4194305 records is refused"),
        (ZSTD, (1 << 22) + 1, "a batch of 4194305 records is refused"),
    ],
)
def test_a_header_that_counts_more_than_its_bytes_hold_is_damage(
    tmp_path: Path, attributes: int, count: int, reason: str
) -> None:
    """A valid CRC proves nothing: a log of a few bytes would have millions of records."""
    write_log(
        tmp_path,
        {
            0: [
                plain(0),
                batch(
                    base_offset=1,
                    count=count,
                    last_offset_delta=count - 1,
                    attributes=attributes,
                    payload=b"",
                ),
            ]
        },
    )
    log = klog.open(str(tmp_path))
    for read in (log.count, lambda topic: log.scan(topic, columns=["offset"]).read_all()):
        with pytest.raises(CorruptFileError, match=f"at position {len(plain(0))}: {reason}"):
            read("t")
