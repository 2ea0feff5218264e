"""Klog roots whose commits say more or less of their records, to hold pushed queries to."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

import klog
from klog.connector.commit_log.commit_builders import delete_records
from klog.connector.embedded import Log
from klog.jobs import adopt, compact, merge
from tests.connector.committed_topic import SMALL, commit, make_root, state_of
from tests.jobs.broker_dirs import copied

FIRST_MS = 1_700_000_000_000
TINY = {"segment.bytes": "3000", "index.interval.bytes": "200"}


def rows(first: int, count: int, partitions: int = 2) -> pa.Table:
    """Return rows of a few keys, in several partitions, whose times are not in order."""
    source = random.Random(first)
    numbers = range(first, first + count)
    times = [FIRST_MS + 1000 * number + source.randrange(-9000, 9000) for number in numbers]
    return pa.table(
        {
            "key": [b"k%d" % source.randrange(9) for _ in numbers],
            "value": [b"%d" % number * 9 for number in numbers],
            "partition": pa.array([number % partitions for number in numbers], pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )


def _written(folder: Path, config: Mapping[str, str]) -> Log:
    log = klog.open(folder)
    log.create_topic("t", 2, {**TINY, **config})
    for first in range(0, 600, 150):
        log.append("t", rows(first, 150), options={"batch.size": "400"})
    return log


def _shifted(folder: Path) -> None:
    """Some of its segments have other offsets in their files."""
    make_root(folder.parent).rename(folder)


def _cut(folder: Path) -> None:
    """Its log start lies in a segment, and one partition has no records any more."""
    _written(folder, {})
    commit(folder, delete_records(state_of(folder).topic_id, {0: 137, 1: 300}), "delete-records")


def _merged(folder: Path) -> None:
    _shifted(folder)
    merge.run(None, str(folder), "t")
    klog.open(folder).append("t", rows(3000, 40, 1))


def _append_time(folder: Path) -> None:
    _written(folder, {"message.timestamp.type": "LogAppendTime"})


def _compacted(folder: Path) -> None:
    log = _written(folder, {"cleanup.policy": "compact"})
    compact.run(None, str(folder), "t", min_dirty_ratio=0.0)
    log.append("t", rows(600, 90))


def _emptied(folder: Path) -> None:
    """One partition had no records at all, and the other one has none any more."""
    log = klog.open(folder)
    log.create_topic("t", 2, SMALL)
    log.append("t", rows(0, 9, 1))
    commit(folder, delete_records(state_of(folder).topic_id, {0: 9}), "delete-records")


def _without_times(folder: Path) -> None:
    log = klog.open(folder)
    log.create_topic("t", 1, SMALL)
    for times in ([-1, 5], [-1, -1], [7, 9]):
        values = {"value": [b"v"] * 2, "timestamp": pa.array(times, pa.timestamp("ms", "UTC"))}
        log.append("t", pa.table(values))


def _adopted(scene: str, topic: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        copied(scene, folder)
        adopt.run(None, str(folder), open_transactions="abort")
        partitions = len(klog.open(folder).describe(topic).partitions)
        klog.open(folder).append(topic, rows(0, 40, partitions))

    return make


ROOTS: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "shifted": ("t", _shifted),
    "cut": ("t", _cut),
    "merged": ("t", _merged),
    "append time": ("t", _append_time),
    "compacted by klog": ("t", _compacted),
    "emptied": ("t", _emptied),
    "without times": ("t", _without_times),
} | {
    topic: (topic, _adopted(scene, topic))
    for scene, topics in {
        "transactions": ("txn.aborted", "txn.interleaved", "txn.marker.first", "txn.java"),
        "compacted-again": ("compacted", "compacted.emptied", "compacted.open", "compacted.txn"),
    }.items()
    for topic in topics
}
"""By name: the topic, and what makes the root in a folder that is not there."""


def make_named_root(name: str, folder: Path) -> tuple[Path, str]:
    """Make one of `ROOTS` below a folder; return it and its topic."""
    topic, make = ROOTS[name]
    make(folder / "root")
    return folder / "root", topic
