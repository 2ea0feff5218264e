"""Every record of the corpus, every field, at both isolation levels, against the real consumer."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.logformat.topic_partition import TopicPartition
from tests.corpus import SCENES, Bounds, Record, scene
from tests.support.reader_rows import LEVELS, read_partition, told_at
from tests.support.resolved_offsets import resolve_offsets

PARTITIONS = [
    pytest.param(name, *key, bounds, level, id=f"{name}-{key[0][:40]}-{key[1]}-{level}")
    for name in SCENES
    for key, bounds in scene(name).partitions().items()
    for level in LEVELS
]


@cache
def records_by_partition(name: str) -> dict[tuple[str, int], list[Record]]:
    by_partition = defaultdict(list)
    for record in scene(name).records():
        by_partition[record.topic, record.partition].append(record)
    return by_partition


@pytest.mark.parametrize(("name", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_a_partition(name: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    expected = told_at(records_by_partition(name)[topic, partition], level)
    assert read_partition(scene(name).log_dirs, topic, partition, level) == expected


@pytest.mark.parametrize(("name", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_bounds(name: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    options = parse_read_options(
        {"assign": json.dumps({topic: [partition]}), "isolationLevel": level}
    )
    root = RawRoot([str(path) for path in scene(name).log_dirs])
    resolved = resolve_offsets(root, options)
    committed = level == "read_committed"
    latest = bounds.last_stable_offset if committed else bounds.high_watermark
    assert [(r.name, r.start_offset, r.end_offset) for r in resolved] == (
        [(TopicPartition(topic, partition), bounds.earliest, latest)]
        if bounds.earliest < latest
        else []
    )


@pytest.mark.parametrize("name", SCENES)
def test_many_small_tasks_give_the_same(name: str) -> None:
    dirs = scene(name).log_dirs
    for topic, partition in scene(name).partitions():
        for level in LEVELS:
            expected = read_partition(dirs, topic, partition, level)
            assert read_partition(dirs, topic, partition, level, minPartitions="9") == expected
