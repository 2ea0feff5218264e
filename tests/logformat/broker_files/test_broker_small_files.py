"""A broker's other files rebuilt from its `.log` files, compared to those that it wrote.

The rule: from logs alone, each segment's `.index`, `.timeindex` and `.txnindex`, the producer
snapshots, the leader epochs and the rolls are those of the broker's directory, which was closed
cleanly. Its producers sent one batch at a time, so that appends and a recovery index the same
(docs/format.md, 8.1).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import decode_epoch_checkpoint
from klog.logformat.broker_files.file_names import (
    parse_segment_file,
    parse_snapshot_file,
    segment_file_name,
)
from klog.logformat.indexes.index_building import batches_as_appends
from klog.logformat.producers.producer_snapshot import decode_snapshot
from klog.logformat.segments.segment_rolling import OpenSegment, RollLimits, plan_rolls
from tests import golden
from tests.corpus import Scene, scene
from tests.support.broker_loader.load_partition import load

# In other topics the log is not what was appended, or not all of format v2.
CHANGED = ("compacted", "retained", "trimmed", "expired", "spread", "mixed", "__")
SCENES = {
    **{version: golden.scene(version) for version in golden.VERSIONS},
    "records": scene("records"),
    "transactions": scene("transactions"),
}


def _logs(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def _is_v2(directory: Path) -> bool:
    return all(log[16] == 2 for log in _logs(directory).values() if log)


PARTITIONS = {
    f"{name}-{topic[:40]}-{partition}": (scene_, topic, partition)
    for name, scene_ in SCENES.items()
    for topic, partition in scene_.partitions()
    if not any(word in topic for word in CHANGED)
    and _is_v2(scene_.partition_dir(topic, partition))
    and any(_logs(scene_.partition_dir(topic, partition)).values())
}
EVERY = pytest.mark.parametrize(
    ("scene_", "topic", "partition"), PARTITIONS.values(), ids=PARTITIONS
)


def _limits(scene_: Scene, topic: str) -> RollLimits:
    config = scene_.configs[topic]
    names = ("segment.bytes", "internal.segment.bytes")
    size = next((int(config[name]) for name in names if name in config), 1 << 30)
    never = (1 << 63) - 1  # the brokers' log.roll.ms
    return RollLimits(
        segment_bytes=size,
        segment_ms=int(config.get("segment.ms", never)),
        segment_index_bytes=int(config.get("segment.index.bytes", 4096)),
        index_interval_bytes=int(config.get("index.interval.bytes", 4096)),
    )


@EVERY
def test_indexes_of_each_segment(scene_: Scene, topic: str, partition: int) -> None:
    directory = scene_.partition_dir(topic, partition)
    logs = _logs(directory)
    interval = _limits(scene_, topic).index_interval_bytes
    loaded = load(logs, interval_bytes=interval)
    rebuilt = {
        segment_file_name(base, suffix): content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    written = {path.name: path.read_bytes() for path in directory.iterdir()
               if parse_segment_file(path.name) is not None}  # fmt: skip
    empty = {name for name in rebuilt.keys() - written.keys() if not rebuilt[name]}
    assert {name: rebuilt[name] for name in rebuilt if name not in empty} == written
    epochs = (directory / "leader-epoch-checkpoint").read_bytes()
    assert loaded.epochs == decode_epoch_checkpoint(epochs)


@EVERY
def test_producers_of_each_snapshot(scene_: Scene, topic: str, partition: int) -> None:
    directory = scene_.partition_dir(topic, partition)
    written = {parse_snapshot_file(path.name): set(decode_snapshot(path.read_bytes()))
               for path in directory.glob("*.snapshot")}  # fmt: skip
    rebuilt = {offset: set(decode_snapshot(content))
               for offset, content in load(_logs(directory)).snapshots.items()}  # fmt: skip
    assert rebuilt == written


@EVERY
def test_rolls(scene_: Scene, topic: str, partition: int) -> None:
    logs = _logs(scene_.partition_dir(topic, partition))
    data = b"".join(logs.values())
    appends = batches_as_appends(scan_batches(data, 0, len(data)))
    plan = plan_rolls(appends, OpenSegment(0, 0), _limits(scene_, topic))
    positions = np.append(appends.positions, len(data))
    assert plan.base_offsets.tolist() == [int(name[:20]) for name in logs]
    assert np.diff(np.append(positions[plan.starts], len(data))).tolist() == [
        len(log) for log in logs.values()
    ]


def test_partitions_have_something_to_compare() -> None:
    """Several segments, indexes with entries, aborted transactions, producers."""
    directories = [scene_.partition_dir(topic, p) for scene_, topic, p in PARTITIONS.values()]
    for pattern, count in (("*.log", 3), ("*.txnindex", 3), ("*.snapshot", 3)):
        assert sum(len(list(path.glob(pattern))) >= count for path in directories) > 3
