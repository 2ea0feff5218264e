"""How far micro-batches read: the shares of Spark's Kafka connector, and a minimum that waits.

Where a test has a number in brackets, it is that of the list of what the connector does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from klog.connector.options.read_options import TriggerLimits
from klog.connector.source import stream_reader
from klog.connector.source.rate_limits import RateLimiter
from klog.connector.source.stream_reader import KlogStreamReader
from klog.logformat.topic_partition import TopicPartition
from tests.connector.log_dirs import many, offsets, write_log
from tests.connector.source.test_stream_reader import rows

SIZE = len(many(1)[0])


def stream(root: Path, **options: Any) -> KlogStreamReader:
    texts = {name: str(value) for name, value in options.items()}
    values = {"subscribe": "t", "startingOffsets": "earliest", "path": str(root)}
    return KlogStreamReader(values | texts)


def logs(root: Path, *counts: int) -> None:
    for partition, count in enumerate(counts):
        write_log(root, {0: many(count)}, f"t-{partition}")


def batch_sizes(reader: KlogStreamReader) -> list[int]:
    """Return the rows of each micro-batch until there is nothing left, read as Spark does."""
    sizes: list[int] = []
    start = reader.initialOffset()
    while True:
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end == start:
            return sizes
        sizes.append(len(offsets(rows(reader, start, end))))
        start = end


@pytest.mark.parametrize(
    ("counts", "limit", "expected"),
    [
        ((100,), 30, [30, 30, 30, 10]),
        ((10, 10, 10), 30, [30]),
        ((10, 10, 10), 100, [30]),
        # 30 x 50 / 82 is 18.3, 30 x 30 / 82 is 10.98, 30 x 2 / 82 is 0.7.
        ((50, 30, 2), 30, [29, 30, 23]),
        # A share below one is one offset, so there are more than asked for.
        ((5, 5, 5), 1, [3, 3, 3, 3, 3]),
        ((7, 0), 3, [3, 3, 1]),
    ],
)
def test_17_shares_of_offsets(
    tmp_path: Path, counts: tuple[int, ...], limit: int, expected: list[int]
) -> None:
    logs(tmp_path, *counts)
    assert batch_sizes(stream(tmp_path, maxOffsetsPerTrigger=limit)) == expected


def test_17_nothing_is_read_at_a_maximum_of_0(tmp_path: Path) -> None:
    logs(tmp_path, 5)
    reader = stream(tmp_path, maxOffsetsPerTrigger=0)
    reader.prepareForTriggerAvailableNow()
    assert batch_sizes(reader) == []


def test_once_has_no_maximum(tmp_path: Path) -> None:
    """[18] Spark asks for all that there is."""
    logs(tmp_path, 50)
    reader = stream(tmp_path, maxOffsetsPerTrigger=3, minOffsetsPerTrigger=3)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable())["t"] == {"0": 50}


def test_available_now_reads_all_in_limited_batches(tmp_path: Path) -> None:
    logs(tmp_path, 50)
    reader = stream(tmp_path, maxOffsetsPerTrigger=20, minOffsetsPerTrigger=15)
    reader.prepareForTriggerAvailableNow()
    logs(tmp_path, 80)
    assert batch_sizes(reader) == [20, 20, 10]


@pytest.mark.parametrize(
    ("counts", "limit", "expected"),
    [
        ((100,), 30 * SIZE, [30, 30, 30, 10]),
        ((100,), 30 * SIZE + 5, [30, 30, 30, 10]),
        ((6,), 1, [1] * 6),
        ((60, 20), 40 * SIZE, [40, 40]),
        ((10,), 1 << 40, [10]),
    ],
)
def test_shares_of_bytes(
    tmp_path: Path, counts: tuple[int, ...], limit: int, expected: list[int]
) -> None:
    logs(tmp_path, *counts)
    assert batch_sizes(stream(tmp_path, maxBytesPerTrigger=limit)) == expected


def test_bytes_of_several_segments(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(40)[:10], 10: many(40)[10:30], 30: many(40)[30:]})
    assert batch_sizes(stream(tmp_path, maxBytesPerTrigger=15 * SIZE)) == [15, 15, 10]


def test_both_maximums_hold(tmp_path: Path) -> None:
    logs(tmp_path, 30)
    reader = stream(tmp_path, maxOffsetsPerTrigger=20, maxBytesPerTrigger=12 * SIZE)
    assert batch_sizes(reader) == [12, 12, 6]


def test_new_partition_is_limited_from_its_start(tmp_path: Path) -> None:
    logs(tmp_path, 10)
    reader = stream(tmp_path, maxOffsetsPerTrigger=6)
    start = {"t": {"0": 10}}
    logs(tmp_path, 10, 20)
    assert reader.latestOffset(start, ReadMaxRows(6)) == {"t": {"0": 10, "1": 6}}


def test_log_ends_are_reported_with_a_limited_batch(tmp_path: Path) -> None:
    logs(tmp_path, 10)
    reader = stream(tmp_path, maxOffsetsPerTrigger=6)
    assert reader.latestOffset({"t": {"0": 0}}, ReadMaxRows(6)) == {"t": {"0": 6}}
    assert (reader.reportLatestOffset() or {})["t"] == {"0": 10}


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": 5, "maxBytesPerTrigger": 6}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": 6, "minOffsetsPerTrigger": 2}, ReadMaxBytes(6)),
        ({"minOffsetsPerTrigger": 2}, ReadMinRows(2)),
    ],
)
def test_limit_that_spark_is_told(tmp_path: Path, options: dict[str, int], limit: Any) -> None:
    logs(tmp_path, 1)
    assert stream(tmp_path, **options).getDefaultReadLimit() == limit


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def test_16_batch_waits_for_a_minimum_or_the_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(stream_reader, "now_ms", clock)
    logs(tmp_path, 3)
    reader = stream(tmp_path, minOffsetsPerTrigger=5, maxTriggerDelay="10s")
    limit, start = reader.getDefaultReadLimit(), {"t": {"0": 0}}
    start = reader.latestOffset(start, limit)
    assert start == {"t": {"0": 3}}  # The first batch after a start does not wait.
    logs(tmp_path, 7)
    assert reader.latestOffset(start, limit) == start
    clock.now_ms += 9_999
    assert reader.latestOffset(start, limit) == start
    clock.now_ms += 1
    start = reader.latestOffset(start, limit)
    assert start == {"t": {"0": 7}}
    logs(tmp_path, 12)
    assert reader.latestOffset(start, limit) == {"t": {"0": 12}}


def test_16_available_now_does_not_wait(tmp_path: Path) -> None:
    """Spark's connector ends such a run with the rest unread."""
    logs(tmp_path, 12)
    reader = stream(tmp_path, minOffsetsPerTrigger=5, maxOffsetsPerTrigger=5)
    reader.prepareForTriggerAvailableNow()
    assert batch_sizes(reader) == [5, 5, 2]


def test_backlog_of_all_partitions_counts_for_the_minimum() -> None:
    limiter = RateLimiter(TriggerLimits(min_offsets=5), Clock())
    names = [TopicPartition("t", number) for number in range(2)]
    limiter.should_wait(dict.fromkeys(names, 0), dict.fromkeys(names, 9))
    assert limiter.should_wait(dict.fromkeys(names, 9), {names[0]: 11, names[1]: 11})
    assert not limiter.should_wait(dict.fromkeys(names, 9), {names[0]: 11, names[1]: 12})
