"""The tally of a soak: the events of all lives compared with one scan of the whole topic.

The words are Jepsen's if it has them: a record that is acknowledged but absent is lost, one that
is there twice is doubled, a lane's numbers that decrease in a partition are reordered. A consumer's
record that differs from the scan is misread; a record of the scan that a consumer never reported is
unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tests.soak.lanes import events_of

Longs = npt.NDArray[np.int64]
_LANE_SIZE, _PARTITION_SIZE = 1 << 44, 1 << 44
"""A lane's numbers and a partition's offsets are below these, so that each pair fits an int64."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of records; all except the first two must be 0 (`wrong`)."""

    acknowledged: int
    read: int
    lost: int = 0
    """Acknowledged, and absent."""
    moved: int = 0
    """Acknowledged at an offset that has another record."""
    doubled: int = 0
    """There more than once."""
    missing: int = 0
    """Below a lane's highest number, and absent."""
    reordered: int = 0
    """After a higher number of its lane, in its partition."""
    misread: int = 0
    """Reported by a consumer, and different in the log."""
    skipped: int = 0
    """Offsets that a consumer's life skipped or read again."""
    unread: int = 0
    """In the log, and never reported by a consumer; summed over consumers."""

    @property
    def wrong(self) -> int:
        """Return the number of all errors."""
        return (
            self.lost + self.moved + self.doubled + self.missing + self.reordered + self.misread
            + self.skipped + self.unread
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Records:
    """Records by their number (with the lane) and position (with the partition).

    `position` is -1 if it is not known.
    """

    number: Longs
    position: Longs


def tally(log: pa.Table, producers: Iterable[Path], consumers: Sequence[Sequence[Path]]) -> Tally:
    """Count records and errors. `log` has `partition`, `offset` and `value` of all records.

    Its rows are in the log's order.
    `producers` are the events of all their lives, `consumers` those of each consumer's lives.
    """
    scanned = _scanned_records(log)
    known = np.unique(scanned.number)
    acks = _records_of(producers, "producer_send_success")
    acknowledged = np.unique(acks.number)
    lanes, counts = np.unique(known // _LANE_SIZE, return_counts=True)
    highest = [int(known[known // _LANE_SIZE == lane].max() % _LANE_SIZE) for lane in lanes]
    placed = acks.position >= 0
    misread = skipped = unread = 0
    for lives in consumers:
        read = [_records_of([path], "record_data") for path in lives]
        misread += sum(_mismatches(scanned, life) for life in read)
        skipped += sum(_count_skipped(life) for life in read)
        everything = np.concatenate([life.position for life in read] or [scanned.position[:0]])
        unread += int(np.count_nonzero(~np.isin(scanned.position, everything)))
    return Tally(
        acknowledged=len(acknowledged),
        read=len(scanned.number),
        lost=int(np.count_nonzero(~np.isin(acknowledged, known))),
        moved=_mismatches(scanned, Records(acks.number[placed], acks.position[placed])),
        doubled=len(scanned.number) - len(known),
        missing=sum(highest) + len(highest) - int(counts.sum()),
        reordered=_count_reordered(scanned),
        misread=misread,
        skipped=skipped,
        unread=unread,
    )


def _scanned_records(log: pa.Table) -> Records:
    parts = pc.split_pattern(log["value"].cast(pa.string()), ".").combine_chunks()
    lane, number = (
        pc.list_element(parts, at).cast(pa.int64()).to_numpy(zero_copy_only=False) for at in (0, 1)
    )
    position = (
        log["partition"].cast(pa.int64()).to_numpy() * _PARTITION_SIZE + log["offset"].to_numpy()
    )
    return Records(lane * _LANE_SIZE + number, position)


def _records_of(paths: Iterable[Path], name: str) -> Records:
    numbers, places = [], []
    for path in paths:
        for event in events_of(path):
            if event["name"] != name:
                continue
            lane, number = event["value"].split(".")
            numbers.append(int(lane) * _LANE_SIZE + int(number))
            offset = event.get("offset")
            places.append(-1 if offset is None else event["partition"] * _PARTITION_SIZE + offset)
    return Records(np.array(numbers, np.int64), np.array(places, np.int64))


def _mismatches(scanned: Records, events: Records) -> int:
    """Count records whose position has another record in the log, or none."""
    order = np.argsort(scanned.position)
    places = scanned.position[order]
    indexes = np.searchsorted(places, events.position)
    inside = indexes < len(places)
    at = order[indexes[inside]]
    same = (scanned.position[at] == events.position[inside]) & (
        scanned.number[at] == events.number[inside]
    )
    return len(events.position) - int(np.count_nonzero(same))


def _count_reordered(scanned: Records) -> int:
    """Count numbers that are lower than the previous one of their lane and partition."""
    order = np.argsort(scanned.position)
    number, partition = scanned.number[order], scanned.position[order] // _PARTITION_SIZE
    by_lane = np.lexsort((np.arange(len(number)), number // _LANE_SIZE, partition))
    number, partition = number[by_lane], partition[by_lane]
    together = (np.diff(partition) == 0) & (np.diff(number // _LANE_SIZE) == 0)
    return int(np.count_nonzero(together & (np.diff(number) < 0)))


def _count_skipped(life: Records) -> int:
    """Count records of a consumer's life that are not at the next offset of their partition."""
    partition = life.position // _PARTITION_SIZE
    order = np.argsort(partition, kind="stable")
    together = np.diff(partition[order]) == 0
    return int(np.count_nonzero(together & (np.diff(life.position[order]) != 1)))
