"""Every record of the corpus, every field, at both isolation levels, against the real consumer."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from klog.connector.log.raw import RawRoot
from klog.connector.options import read_options
from klog.connector.source import scan
from tests.corpus import SCENES, Bounds, Record, scene
from tests.reading import LEVELS, read_partition, told_at

PARTITIONS = [
    pytest.param(name, *key, bounds, level, id=f"{name}-{key[0][:40]}-{key[1]}-{level}")
    for name in SCENES
    for key, bounds in scene(name).partitions().items()
    for level in LEVELS
]


@cache
def told(name: str) -> dict[tuple[str, int], list[Record]]:
    by_partition = defaultdict(list)
    for record in scene(name).records():
        by_partition[record.topic, record.partition].append(record)
    return by_partition


@pytest.mark.parametrize(("name", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_a_partition(name: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    wanted = told_at(told(name)[topic, partition], level)
    assert read_partition(scene(name).log_dirs, topic, partition, level) == wanted


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
    dirs = scene(name).log_dirs
    for topic, partition in scene(name).partitions():
        for level in LEVELS:
            whole = read_partition(dirs, topic, partition, level)
            assert read_partition(dirs, topic, partition, level, minPartitions="9") == whole
