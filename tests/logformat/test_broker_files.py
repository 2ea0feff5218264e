"""What klog makes of a broker's `.log` files alone, against the files the broker kept beside them.

The rule: nothing but logs is given, and each segment's `.index`, `.timeindex` and `.txnindex`, the
producer snapshots, the leader epochs and the places where the log rolled must come out as in the
broker's directory, which was closed cleanly. Its producers sent one batch at a time, so that what
an append did and what recovery does are the same (docs/format.md, 8.1).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from klog.logformat import batch as v2
from klog.logformat.checkpoint import decode_epoch_checkpoint
from klog.logformat.indexing import appends_of
from klog.logformat.names import segment_file, segment_name, snapshot_file
from klog.logformat.partition import load
from klog.logformat.rolling import OpenSegment, RollLimits, plan_rolls
from klog.logformat.snapshot import decode_snapshot
from tests import golden
from tests.corpus import Scene, scene

# Elsewhere the log is not what was appended, or not of format v2 throughout.
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
    f"{name}-{topic[:40]}-{partition}": (told, topic, partition)
    for name, told in SCENES.items()
    for topic, partition in told.partitions()
    if not any(word in topic for word in CHANGED)
    and _is_v2(told.partition_dir(topic, partition))
    and any(_logs(told.partition_dir(topic, partition)).values())
}
EVERY = pytest.mark.parametrize(("told", "topic", "partition"), PARTITIONS.values(), ids=PARTITIONS)


def _limits(told: Scene, topic: str) -> RollLimits:
    config = told.configs[topic]
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
def test_the_indexes_of_each_segment(told: Scene, topic: str, partition: int) -> None:
    directory = told.partition_dir(topic, partition)
    logs = _logs(directory)
    interval = _limits(told, topic).index_interval_bytes
    loaded = load(logs, interval_bytes=interval)
    made = {
        segment_name(base, suffix): content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    kept = {path.name: path.read_bytes() for path in directory.iterdir()
            if segment_file(path.name) is not None}  # fmt: skip
    empty = {name for name in made.keys() - kept.keys() if not made[name]}
    assert {name: made[name] for name in made if name not in empty} == kept
    epochs = (directory / "leader-epoch-checkpoint").read_bytes()
    assert loaded.epochs == decode_epoch_checkpoint(epochs)


@EVERY
def test_the_producers_of_each_snapshot(told: Scene, topic: str, partition: int) -> None:
    directory = told.partition_dir(topic, partition)
    kept = {snapshot_file(path.name): set(decode_snapshot(path.read_bytes()))
            for path in directory.glob("*.snapshot")}  # fmt: skip
    made = {offset: set(decode_snapshot(content))
            for offset, content in load(_logs(directory)).snapshots.items()}  # fmt: skip
    assert made == kept


@EVERY
def test_where_the_log_rolled(told: Scene, topic: str, partition: int) -> None:
    logs = _logs(told.partition_dir(topic, partition))
    data = b"".join(logs.values())
    appends = appends_of(v2.scan(data, 0, len(data)))
    plan = plan_rolls(appends, OpenSegment(0, 0), _limits(told, topic))
    positions = np.append(appends.positions, len(data))
    assert plan.base_offsets.tolist() == [int(name[:20]) for name in logs]
    assert np.diff(np.append(positions[plan.starts], len(data))).tolist() == [
        len(log) for log in logs.values()
    ]


def test_they_show_something() -> None:
    """Several segments, indexes with entries, aborted transactions, producers."""
    directories = [told.partition_dir(topic, p) for told, topic, p in PARTITIONS.values()]
    for pattern, count in (("*.log", 3), ("*.txnindex", 3), ("*.snapshot", 3)):
        assert sum(len(list(path.glob(pattern))) >= count for path in directories) > 3
