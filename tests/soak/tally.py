"""What a soak came to: the events of all lives against one scan of the whole topic.

The words are Jepsen's where it has them: acknowledged but not there is lost, there twice is
doubled, a lane's numbers that fall along a partition are reordered. A consumer's record that the
scan has not, or has otherwise, is misread; one of the scan that a consumer never told is unread.
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
_LANE, _PARTITION = 1 << 44, 1 << 44
"""A number of a lane and an offset of a partition are below these, so that one int64 is both."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of records; all but the first two must be 0 (`wrong`)."""

    acknowledged: int
    read: int
    lost: int = 0
    """Acknowledged, and not there."""
    moved: int = 0
    """Acknowledged at an offset where something else is."""
    doubled: int = 0
    """There more than once."""
    missing: int = 0
    """Below a lane's highest number, and not there."""
    reordered: int = 0
    """There behind a higher number of its lane, in its partition."""
    misread: int = 0
    """Told by a consumer, and not so in the log."""
    skipped: int = 0
    """Offsets that a consumer's life jumped over or went back on."""
    unread: int = 0
    """In the log, and never told by one of the consumers; summed over them."""

    @property
    def wrong(self) -> int:
        """Give the number of all that must not be."""
        return (
            self.lost + self.moved + self.doubled + self.missing + self.reordered + self.misread
            + self.skipped + self.unread
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Records:
    """Records by what they are (`number`, of a lane) and where (`place`, of a partition).

    `place` is -1 where it is not known.
    """

    number: Longs
    place: Longs


def tally(log: pa.Table, producers: Iterable[Path], consumers: Sequence[Sequence[Path]]) -> Tally:
    """Count. `log` has `partition`, `offset` and `value` of all there is, in the log's order.

    `producers` are the events of all their lives, `consumers` those of each consumer's.
    """
    there = _scanned(log)
    known = np.unique(there.number)
    told = _told(producers, "producer_send_success")
    acknowledged = np.unique(told.number)
    lanes, counts = np.unique(known // _LANE, return_counts=True)
    highest = [int(known[known // _LANE == lane].max() % _LANE) for lane in lanes]
    placed = told.place >= 0
    misread = skipped = unread = 0
    for lives in consumers:
        read = [_told([path], "record_data") for path in lives]
        misread += sum(_elsewhere(there, life) for life in read)
        skipped += sum(_jumps(life) for life in read)
        everything = np.concatenate([life.place for life in read] or [there.place[:0]])
        unread += int(np.count_nonzero(~np.isin(there.place, everything)))
    return Tally(
        acknowledged=len(acknowledged),
        read=len(there.number),
        lost=int(np.count_nonzero(~np.isin(acknowledged, known))),
        moved=_elsewhere(there, Records(told.number[placed], told.place[placed])),
        doubled=len(there.number) - len(known),
        missing=sum(highest) + len(highest) - int(counts.sum()),
        reordered=_falls(there),
        misread=misread,
        skipped=skipped,
        unread=unread,
    )


def _scanned(log: pa.Table) -> Records:
    parts = pc.split_pattern(log["value"].cast(pa.string()), ".").combine_chunks()
    lane, number = (
        pc.list_element(parts, at).cast(pa.int64()).to_numpy(zero_copy_only=False) for at in (0, 1)
    )
    place = log["partition"].cast(pa.int64()).to_numpy() * _PARTITION + log["offset"].to_numpy()
    return Records(lane * _LANE + number, place)


def _told(paths: Iterable[Path], name: str) -> Records:
    numbers, places = [], []
    for path in paths:
        for event in events_of(path):
            if event["name"] != name:
                continue
            lane, number = event["value"].split(".")
            numbers.append(int(lane) * _LANE + int(number))
            offset = event.get("offset")
            places.append(-1 if offset is None else event["partition"] * _PARTITION + offset)
    return Records(np.array(numbers, np.int64), np.array(places, np.int64))


def _elsewhere(there: Records, told: Records) -> int:
    """Count what was told of a place where the log has something else, or nothing."""
    order = np.argsort(there.place)
    places = there.place[order]
    found = np.searchsorted(places, told.place)
    inside = found < len(places)
    at = order[found[inside]]
    same = (there.place[at] == told.place[inside]) & (there.number[at] == told.number[inside])
    return len(told.place) - int(np.count_nonzero(same))


def _falls(there: Records) -> int:
    """Count numbers below the one before them, of one lane in one partition."""
    order = np.argsort(there.place)
    number, partition = there.number[order], there.place[order] // _PARTITION
    by_lane = np.lexsort((np.arange(len(number)), number // _LANE, partition))
    number, partition = number[by_lane], partition[by_lane]
    together = (np.diff(partition) == 0) & (np.diff(number // _LANE) == 0)
    return int(np.count_nonzero(together & (np.diff(number) < 0)))


def _jumps(life: Records) -> int:
    """Count where one consumer's life does not go on at the next offset of a partition."""
    partition = life.place // _PARTITION
    order = np.argsort(partition, kind="stable")
    together = np.diff(partition[order]) == 0
    return int(np.count_nonzero(together & (np.diff(life.place[order]) != 1)))
