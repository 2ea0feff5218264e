"""Damage to logs as tables: the partition, the damage to its copy, and what klog answers.

The rule: a row is one damage; what is expected comes from the real consumer's account of the
undamaged scene, cut by offsets, never from klog. `tests/corpus/` holds the damage seen on brokers;
the kinds here are what hardware, an operator or a bad writer could do besides. A name begins with
the row of docs/format.md, 19, that it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader
from klog.errors import CorruptFileError
from tests.corpus import scene
from tests.corpus.damage import Spot, copy

LEVELS = ("read_uncommitted", "read_committed")
MARKER = ".kafka_cleanshutdown"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"

Levels = dict[str, list[int]]
"""Isolation level to the offsets read at it."""
Hurt = Callable[[Path], object]
"""Damages a partition directory; returns the spot where there is one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An error that names the damaged file, the position (that of the spot) and says `words`."""

    words: str = ""


Expected = Callable[[Levels, Spot], Levels]


@dataclass(frozen=True, slots=True)
class Case:
    """A row: the partition, the damage to its copy, and what klog must answer."""

    name: str
    scene: str
    topic: str
    hurt: Hurt
    expected: Expected | Refused
    partition: int = 0

    def damaged(self, into: Path) -> tuple[Path, Spot]:
        """Make the damaged copy; a damage without a spot has one at the log's start."""
        directory = copied(self.scene, self.topic, into, self.partition)
        spot = self.hurt(directory)
        return directory, spot if isinstance(spot, Spot) else Spot(directory, 0, 0)


def copied(scene_name: str, topic: str, into: Path, partition: int = 0) -> Path:
    """Copy a partition with the files of its log dir."""
    return copy(scene(scene_name).partition_dir(topic, partition), into)


@cache
def truth(scene_name: str, topic: str, partition: int = 0) -> Levels:
    """Return the offsets that the real consumer read before the damage."""
    records = [
        r for r in scene(scene_name).records() if (r.topic, r.partition) == (topic, partition)
    ]
    return {
        "read_uncommitted": [r.offset for r in records],
        "read_committed": [r.offset for r in records if r.read_committed],
    }


def read(directory: Path, level: str, roots: list[Path] | None = None, **options: str) -> list[int]:
    """Return the offsets that klog reads of one partition directory, in order.

    `roots` are its log directories where they are not only the one above it.
    """
    topic, _, number = directory.name.rpartition("-")
    paths = [str(root) for root in roots or [directory.parent]]
    read_options = {
        "assign": json.dumps({topic: [int(number)]}),
        "isolationLevel": level,
        **options,
    }
    parsed = parse_read_options(read_options)
    root = RawRoot(paths)
    reader = make_reader(paths, parsed)
    tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    return [
        offset
        for task in tasks
        for rows in reader.read(task)
        for offset in rows.column("offset").to_pylist()
    ]


def read_both(directory: Path, **options: str) -> Levels:
    """Read at both isolation levels."""
    return {level: read(directory, level, None, **options) for level in LEVELS}


def by_partition(directory: Path, offset: int) -> str:
    """Write `startingOffsets` or `endingOffsets` for one partition."""
    topic, _, number = directory.name.rpartition("-")
    return json.dumps({topic: {number: offset}})


def check_refused(error: CorruptFileError, directory: Path, spot: Spot, words: str) -> None:
    """Check that an error says what a user needs: partition, file, position, reason."""
    message = str(error)
    assert (error.path, error.position) == (str(spot.file), spot.position), message
    assert error.topic_partition == directory.name
    for part in (directory.name, str(spot.file), f"position {spot.position}", words):
        assert part in message


def whole(before: Levels, spot: Spot) -> Levels:
    """Expect what was there before the damage."""
    return before


def below(before: Levels, spot: Spot) -> Levels:
    """Expect what lies before the spot."""
    return {level: [o for o in offsets if o < spot.offset] for level, offsets in before.items()}


def nothing(before: Levels, spot: Spot) -> Levels:
    """Expect no record and no error."""
    return {level: [] for level in before}


def stable_below(last_stable_offset: int) -> Expected:
    """Expect what lies before the spot, and of that, read_committed, what is stable."""

    def expected(before: Levels, spot: Spot) -> Levels:
        cut = below(before, spot)
        stable = [o for o in cut["read_committed"] if o < last_stable_offset]
        return {**cut, "read_committed": stable}

    return expected


def without(first: int, last: int) -> Expected:
    """Expect all but the offsets from `first` to `last`."""

    def expected(before: Levels, spot: Spot) -> Levels:
        return {
            level: [o for o in offsets if not first <= o <= last]
            for level, offsets in before.items()
        }

    return expected


def replaced(later: str, topic: str, first: int, last: int) -> Expected:
    """Expect the truth of a later scene for these offsets, and the own one for the others."""

    def expected(before: Levels, spot: Spot) -> Levels:
        cleaned = truth(later, topic)
        kept = without(first, last)(before, spot)
        return {
            level: sorted(kept[level] + [o for o in cleaned[level] if first <= o <= last])
            for level in before
        }

    return expected
