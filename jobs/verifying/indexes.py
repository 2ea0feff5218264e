"""The offset and time index of a segment, held to the batches of its log as they come by.

The rule: an entry of the offset index says where an append begins and its last offset; an entry of
the time index says the largest timestamp so far and the last offset of the earliest batch that has
it; the last one says the largest of all. klog takes each batch for an append. A segment of another
origin may have appends of many batches, and times of single records: there an entry has to begin a
batch before the one with its offset, or to lie in a batch that has its time.
"""

from __future__ import annotations

import numpy as np

from klog.connector.log.segment import Chunk
from klog.jobs.verifying.findings import Findings
from klog.logformat import batch as v2
from klog.logformat.index import Longs, Mask
from klog.logformat.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.offset_index import decode_offset_index
from klog.logformat.time_index import ENTRY as TIME_ENTRY
from klog.logformat.time_index import decode_time_index


class Entries:
    """Which entries of one index were looked at so far, and which of them fit."""

    def __init__(self, keys: Longs, others: Longs) -> None:
        """Take what entries are found by, and what else they say."""
        self.order = np.argsort(keys, kind="stable")
        self.keys, self.others = keys[self.order], others[self.order]
        self.fits = np.zeros(len(keys), np.bool_)
        self.rises = bool((np.diff(keys) > 0).all() and (np.diff(others) > 0).all())

    def between(self, begin: int, end: int) -> slice:
        """Give those whose keys lie in a range."""
        return slice(*np.searchsorted(self.keys, (begin, end), "left").tolist())

    def tell(self, kind: str, name: str, file: str, findings: Findings) -> None:
        """Tell of the first that does not fit, and how many there are."""
        wrong = np.sort(self.order[~self.fits])
        if len(wrong):
            what = f"{len(wrong):,} of {len(self.fits):,} entries of the {name} index do not fit "
            what += f"the log, the first is entry {wrong[0]}"
            findings.add(kind, what, int(wrong[0]) * _entry_bytes(kind), file=file)
        elif not self.rises:
            findings.add(kind, f"the entries of the {name} index do not rise", file=file)


def _entry_bytes(kind: str) -> int:
    return OFFSET_ENTRY.itemsize if kind == "index" else TIME_ENTRY.itemsize


class Indexes:
    """Both indexes of one segment; `strict` for one that klog's writer made."""

    def __init__(
        self, index: bytes, time_index: bytes | None, base_offset: int, *, strict: bool
    ) -> None:
        """Take the bytes of both files, whole entries each; offsets are the file's.

        A time index of None is not there to be looked at; an empty one may lack its last entry.
        """
        offsets = decode_offset_index(index, base_offset)
        times = decode_time_index(time_index or b"", base_offset)
        self.offsets = Entries(offsets.positions, offsets.offsets)
        self.times = Entries(times.offsets, times.timestamps)
        self._strict = strict
        self._largest = v2.NO_TIMESTAMP
        self._last_time = times.last_entry.timestamp_ms
        self._is_closed = time_index is not None and len(index) + len(time_index) > 0

    def take(self, chunk: Chunk, good: Mask) -> None:
        """Compare the entries that speak of these batches; those that are not good prove none."""
        if not len(chunk.batches):
            return
        batches = chunk.batches
        starts = batches.starts + chunk.position
        lasts = batches.next_offsets - 1
        self._take_offsets(starts, chunk.end, lasts, good, batches)
        self._take_times(lasts, good, batches)

    def skip(self, position: int, end: int) -> None:
        """Leave out the offset entries that point at bytes that are no batch."""
        self.offsets.fits[self.offsets.between(position, end)] = True

    def tell(self, stem: str, findings: Findings, *, whole: bool) -> None:
        """Tell of what does not fit; where not all of the log was read, of what is known for sure.

        `stem` is the segment's file without its suffix.
        """
        if not whole:
            self.times.fits[:] = True
        self.offsets.tell("index", "offset", f"{stem}.index", findings)
        file = f"{stem}.timeindex"
        self.times.tell("timeindex", "time", file, findings)
        closes = self._strict and self._is_closed and whole
        if closes and self._last_time != self._largest and not findings.has("timeindex"):
            what = f"the time index ends with timestamp {self._last_time}, and the largest of the "
            findings.add("timeindex", f"{what}log is {self._largest}", file=file)

    def _take_offsets(
        self, starts: Longs, end: int, lasts: Longs, good: Mask, batches: v2.Batches
    ) -> None:
        chosen = self.offsets.between(int(starts[0]), end)
        positions, offsets = self.offsets.keys[chosen], self.offsets.others[chosen]
        at = np.searchsorted(starts, positions, "right") - 1
        if self._strict:
            fits = offsets == lasts[at]
        else:
            fits = (offsets >= batches.lowest_offsets[at]) & np.isin(offsets, lasts)
            crosses = offsets > lasts[-1]  # The append goes on in the next chunk.
            fits |= crosses
        self.offsets.fits[chosen] = ((starts[at] == positions) & fits) | ~good[at]

    def _take_times(self, lasts: Longs, good: Mask, batches: v2.Batches) -> None:
        timestamps = batches.headers["max_timestamp"].astype(np.int64)
        timestamps = np.where(good, timestamps, v2.NO_TIMESTAMP)
        before = np.maximum.accumulate(np.append(self._largest, timestamps))
        self._largest = int(before[-1])
        lowest = batches.lowest_offsets
        chosen = self.times.between(int(lowest.min()), int(lasts.max()) + 1)
        offsets, said = self.times.keys[chosen], self.times.others[chosen]
        at = np.minimum(np.searchsorted(lasts, offsets, "left"), len(lasts) - 1)
        if self._strict:
            fits = (lasts[at] == offsets) & (timestamps[at] == said) & (before[at] < said)
        else:
            fits = (lowest[at] <= offsets) & (timestamps[at] == said)
        self.times.fits[chosen] |= fits
