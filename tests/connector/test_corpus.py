"""Every record of the corpus, every field, at both isolation levels, against the real consumer."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from klog.connector.log.raw import RawRoot
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.source.rows import MAX_TIMESTAMP_MS
from tests.corpus import SCENES, Bounds, Digest, Record, scene

PARTITIONS = [
    pytest.param(name, *key, bounds, level, id=f"{name}-{key[0][:40]}-{key[1]}-{level}")
    for name in SCENES
    for key, bounds in scene(name).partitions().items()
    for level in ("read_uncommitted", "read_committed")
]


@cache
def told(name: str) -> dict[tuple[str, int], list[Record]]:
    by_partition = defaultdict(list)
    for record in scene(name).records():
        by_partition[record.topic, record.partition].append(record)
    return by_partition


def held(timestamp_ms: int) -> int:
    """Give the time that Spark's microseconds can hold: `docs/reading.md`, Timestamps."""
    return max(-MAX_TIMESTAMP_MS, min(timestamp_ms, MAX_TIMESTAMP_MS))


def read_all(name: str, topic: str, partition: int, level: str, **more: str) -> list[Record]:
    directories = [str(path) for path in scene(name).log_dirs]
    given = {
        "assign": json.dumps({topic: [partition]}),
        "includeHeaders": "true",
        "isolationLevel": level,
    } | more
    options = read_options(given)
    root = RawRoot(directories)
    found = []
    for task in scan.slices(root, scan.pin(root, options), options):
        for batch in scan.reader(directories, options).read(task):
            batch.validate(full=True)
            times = batch.column("timestamp").cast("int64").to_pylist()
            position = batch.schema.get_field_index("timestamp")
            for row, microseconds in zip(
                batch.remove_column(position).to_pylist(), times, strict=True
            ):
                value = row["value"]
                long = value is not None and len(value) > 4096
                headers = tuple((h["key"], h["value"]) for h in row["headers"] or ())
                assert microseconds % 1000 == 0
                found.append(
                    Record(
                        row["topic"],
                        row["partition"],
                        row["offset"],
                        microseconds // 1000,
                        row["timestampType"],
                        row["key"],
                        Digest.of(value) if long else value,
                        headers,
                        read_committed=True,
                    )
                )
    return found


@pytest.mark.parametrize(("name", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_a_partition(name: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    wanted = [
        Record(
            one.topic,
            one.partition,
            one.offset,
            held(one.timestamp),
            one.timestamp_type,
            one.key,
            one.value,
            one.headers,
            read_committed=True,
        )
        for one in told(name)[topic, partition]
        if level == "read_uncommitted" or one.read_committed
    ]
    assert read_all(name, topic, partition, level) == wanted


@pytest.mark.parametrize(("name", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_bounds(name: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    options = read_options({"assign": json.dumps({topic: [partition]}), "isolationLevel": level})
    root = RawRoot([str(path) for path in scene(name).log_dirs])
    pinned = scan.pin(root, options)
    committed = level == "read_committed"
    latest = bounds.last_stable_offset if committed else bounds.high_watermark
    row = (topic, partition, bounds.earliest, latest)
    assert [(t, p, start, end) for t, p, _, start, end in pinned] == (
        [row] if bounds.earliest < latest else []
    )


@pytest.mark.parametrize("name", SCENES)
def test_many_small_tasks_give_the_same(name: str) -> None:
    for topic, partition in scene(name).partitions():
        for level in ("read_uncommitted", "read_committed"):
            whole = read_all(name, topic, partition, level)
            assert read_all(name, topic, partition, level, minPartitions="9") == whole
