"""Every golden vector decodes to exactly what the Java consumer of its own version was given.

The rule: every partition of every version, every field, at both isolation levels, read the one way
klog has: by offset look-up, through the plan, the outcomes of transactions and the decoder.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from tests.corpus import Bounds, Record
from tests.golden import VERSIONS, scene
from tests.support.reader_rows import LEVELS, read_partition, told_at
from tests.support.resolved_offsets import resolve_offsets

PARTITIONS = [
    pytest.param(version, *where, bounds, level, id=f"{version}-{where[0]}-{where[1]}-{level}")
    for version in VERSIONS
    for where, bounds in scene(version).partitions().items()
    for level in LEVELS
]
# By topic, the magics of its batches in the order in which they first appear.
FORMATS: dict[str, dict[str, tuple[int, ...]]] = {
    "2.8.2": {
        "v0": (0,), "v0.compacted": (0,), "v1": (1,), "v1.append": (1,), "v1.compacted": (1,),
        "v1.kafka-python": (1,), "v2": (2,), "v2.append": (2,), "mixed": (0, 1, 2), "txn": (2,),
        "__consumer_offsets": (2,), "__transaction_state": (2,),
    },
    "3.9.1": {"v2": (2,), "txn": (2,), "__consumer_offsets": (2,)},
    "4.2.0": {"v2": (2,), "txn": (2,), "__consumer_offsets": (2,)},
}  # fmt: skip


@cache
def expected_records(version: str) -> dict[tuple[str, int], list[Record]]:
    by_partition = defaultdict(list)
    for record in scene(version).records():
        by_partition[record.topic, record.partition].append(record)
    return by_partition


@pytest.mark.parametrize(("version", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_a_partition(version: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    expected = told_at(expected_records(version)[topic, partition], level)
    assert expected, "a partition without records shows nothing"
    assert read_partition(scene(version).log_dirs, topic, partition, level) == expected


@pytest.mark.parametrize(("version", "topic", "partition", "bounds", "level"), PARTITIONS)
def test_bounds(version: str, topic: str, partition: int, bounds: Bounds, level: str) -> None:
    options = parse_read_options(
        {"assign": json.dumps({topic: [partition]}), "isolationLevel": level}
    )
    root = RawRoot([str(path) for path in scene(version).log_dirs])
    (resolved,) = resolve_offsets(root, options)
    committed = level == "read_committed"
    latest = bounds.last_stable_offset if committed else bounds.high_watermark
    assert (resolved.start_offset, resolved.end_offset) == (bounds.earliest, latest)


@pytest.mark.parametrize("version", VERSIONS)
def test_from_each_offset(version: str) -> None:
    """A start inside a wrapper, a batch, a gap: the records below it are cut off, no other."""
    for (topic, partition), records in expected_records(version).items():
        expected = told_at(records, "read_uncommitted")
        bounds = scene(version).partitions()[topic, partition]
        for start in range(bounds.earliest, bounds.high_watermark, 7):
            actual = read_partition(
                scene(version).log_dirs, topic, partition, "read_uncommitted",
                startingOffsets=json.dumps({topic: {str(partition): start}}),
            )  # fmt: skip
            assert actual == [record for record in expected if record.offset >= start]


@pytest.mark.parametrize(
    ("version", "topic"), [(version, topic) for version in FORMATS for topic in FORMATS[version]]
)
def test_the_formats_are_those_promised(version: str, topic: str) -> None:
    scene_of_version = scene(version)
    for name, partition in scene_of_version.partitions():
        if name == topic:
            logs = sorted(scene_of_version.partition_dir(topic, partition).glob("*.log"))
            magics = dict.fromkeys(magic for log in logs for magic in _magics(log.read_bytes()))
            assert tuple(magics) == FORMATS[version][topic]
            assert topic != "mixed" or len(logs) == 1, "all in one segment"


def _magics(data: bytes) -> list[int]:
    """Return the magic of each entry: byte 16 in every format (docs/format.md, 1)."""
    magics, position = [], 0
    while position < len(data):
        magics.append(data[position + 16])
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return magics


def test_what_the_vectors_show_at_all() -> None:
    """They would prove little without gaps, nulls, headers, both levels and all types of time."""
    records = scene("2.8.2").records()
    assert {record.timestamp_type for record in records} == {-1, 0, 1}
    assert any(record.key is None and record.value is None for record in records)
    assert any(len(record.headers) == 3 for record in records)
    assert {record.read_committed for record in records if record.topic == "txn"} == {True, False}
    for topic in ("v0.compacted", "v1.compacted"):
        offsets = [record.offset for record in expected_records("2.8.2")[topic, 1]]
        assert offsets[-1] - offsets[0] >= len(offsets) + 10
