"""Whether commits hide what transactions aborted, and nothing else: held to the control batches.

The rule: data of a transaction is decided by its producer's next marker, in whichever segment of
the partition it lies (docs/format.md, 6 and 10). What an entry's `aborted` hides has to be just
that. Data that no marker follows says nothing, for its log was taken with its transaction open; nor
does what lies before a place that could not be read, where a marker may have been.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klog.connector.log.entries import Entry, aborted_of
from klog.connector.log.segment import Chunk
from klog.errors import CorruptRecordError
from klog.jobs.verifying.findings import Finding, Findings
from klog.logformat.control import ABORT
from klog.logformat.index import Longs, Mask
from klog.logformat.transactions import (
    aborted_by_index,
    is_control,
    is_transactional_data,
    markers,
    rows_of,
)


@dataclass(slots=True)
class Data:
    """Data of one transaction in a segment: where it begins, how many batches are hidden or not."""

    file: str
    position: int
    offset: int
    hidden: int = 0
    shown: int = 0

    def wrong(self, producer: int, marker: tuple[int, int]) -> str | None:
        """Say what is wrong with it, as a marker, offset and kind, decides."""
        offset, kind = marker
        count, now = (self.shown, "shows") if kind == ABORT else (self.hidden, "hides")
        if not count:
            return None
        ends = "ABORT" if kind == ABORT else "COMMIT"
        return (
            f"the commit {now} {count} batches of a transaction of producer {producer}, and the "
            f"{ends} marker at offset {offset} ends it"
        )


@dataclass(slots=True)
class Decided:
    """What neighbouring segments have to know of each other's transactions, by producer.

    `first_markers` are offset and kind of the first one there, `open` the data that none follows
    there. Where `is_lost`, markers may be missing, so that the first ones are not known.
    """

    first_markers: dict[int, tuple[int, int]] = field(default_factory=dict)
    open: dict[int, list[Data]] = field(default_factory=dict)
    is_lost: bool = False

    def add(self, behind: Decided, topic: str, partition: int) -> list[Finding]:
        """Take what is known of the segments behind these; gives what is wrong of these by it."""
        found = follow(self.open, behind, topic, partition)
        self.is_lost |= behind.is_lost
        if self.is_lost:
            self.first_markers.clear()
        else:
            for producer, marker in behind.first_markers.items():
                self.first_markers.setdefault(producer, marker)
        return found


def follow(
    known: dict[int, list[Data]], behind: Decided, topic: str, partition: int
) -> list[Finding]:
    """Make the data that no marker follows so far that of the segments behind it too.

    Gives what is wrong of it. It costs what there is to know of the segments behind.
    """
    found: list[Finding] = []
    if behind.is_lost:
        known.clear()
    else:
        for producer, marker in behind.first_markers.items():
            for data in known.pop(producer, ()):
                what = data.wrong(producer, marker)
                if what is not None:
                    place = data.position, data.offset
                    found.append(Finding(topic, partition, data.file, "aborted", what, *place))
    for producer, some in behind.open.items():
        known.setdefault(producer, []).extend(some)
    return found


class Transactions:
    """The transactions of one segment, its chunks given in order."""

    def __init__(self, entry: Entry, findings: Findings) -> None:
        """Begin with none."""
        self._file, self._shift = entry["file"], entry["offset_shift"]
        self._findings = findings
        self._aborted: Longs = rows_of(aborted_of(entry))
        self._first_markers: dict[int, tuple[int, int]] = {}
        self._open: dict[int, Data] = {}
        self._is_lost = False

    def lose(self) -> None:
        """Know of nothing that lies before: a marker may have been where nothing could be read."""
        self._is_lost = True
        self._open.clear()

    def take(self, chunk: Chunk, good: Mask) -> None:
        """Follow the `good` batches of a chunk, one by one where there are transactions."""
        batches = chunk.batches
        data = is_transactional_data(batches) & (batches.headers["count"] != 0)
        ends = is_control(batches) & (batches.headers["producer_id"] >= 0)
        chosen = good & (data | ends)
        own = batches.where(chosen)
        try:
            kinds = {offset: kind for offset, _, kind in markers(chunk.data, own)}
        except CorruptRecordError:
            self.lose()
            return
        bad_before = np.cumsum(~good)
        behind = bad_before[chosen].tolist()
        hidden, control = aborted_by_index(own, self._aborted).tolist(), is_control(own).tolist()
        offsets, ids = own.base_offsets.tolist(), own.headers["producer_id"].tolist()
        passed = 0
        for number in range(len(own)):
            if behind[number] > passed:
                self.lose()
                passed = behind[number]
            offset, producer = offsets[number], ids[number]
            if not control[number]:
                position = chunk.position + int(own.starts[number])
                one = self._open.setdefault(
                    producer, Data(self._file, position, offset + self._shift)
                )
                one.hidden += hidden[number]
                one.shown += not hidden[number]
            elif offset in kinds:
                self._end(producer, (offset + self._shift, kinds[offset]))
        if len(good) and bad_before[-1] > passed:
            self.lose()

    def decided(self) -> Decided:
        """Give what other segments have to know."""
        still = {producer: [data] for producer, data in self._open.items()}
        return Decided({} if self._is_lost else self._first_markers, still, self._is_lost)

    def _end(self, producer: int, marker: tuple[int, int]) -> None:
        self._first_markers.setdefault(producer, marker)
        data = self._open.pop(producer, None)
        what = None if data is None else data.wrong(producer, marker)
        if data is not None and what is not None:
            self._findings.add("aborted", what, data.position, data.offset)
