"""Check the offset and time index of a segment against the batches of its log.

The rule: an entry of the offset index has the position where an append begins, and its last offset.
An entry of the time index has the largest timestamp so far, and the last offset of the earliest
batch that has it; the last entry has the largest timestamp of all. klog takes each batch for an
append. A segment that a broker or a rewrite made may have appends of several batches, and
timestamps of single records. Of such a segment an entry must begin a batch before the one with its
offset, or be within a batch that has its timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.segment_chunks import Chunk
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.offset_index import decode_offset_index
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.indexes.time_index import decode_time_index

INDEX, TIME_INDEX = "index", "timeindex"
"""The kinds of indexes: the suffixes of their files."""


@dataclass(frozen=True, slots=True)
class IndexFault:
    """What is wrong with an index; `position` is that of the entry in the index file, if any."""

    kind: str
    reason: str
    position: int | None = None


class IndexCheck:
    """Checks both indexes of one segment while its batches are read."""

    def __init__(
        self, index: bytes, time_index: bytes | None, base_offset: int, *, is_klogs: bool
    ) -> None:
        """Decode the indexes.

        Args:
            index: The bytes of the offset index, complete entries.
            time_index: The bytes of the time index, complete entries; None skips its last entry.
            base_offset: The offset that the indexes count from, as in the file.
            is_klogs: Whether klog's writer made the segment, so that each batch is an append.
        """
        offsets = decode_offset_index(index, base_offset)
        times = decode_time_index(time_index or b"", base_offset)
        self._offsets = _CheckedEntries(offsets.positions, offsets.offsets)
        self._times = _CheckedEntries(times.offsets, times.timestamps)
        self._is_klogs = is_klogs
        self._max_timestamp_ms = v2.NO_TIMESTAMP
        self._last_timestamp_ms = times.last_entry.timestamp_ms
        self._has_last_entry = time_index is not None and len(index) + len(time_index) > 0

    def add(self, chunk: Chunk, valid: Mask) -> None:
        """Check the entries that are about a chunk.

        Args:
            chunk: The chunk.
            valid: Which of its batches may be compared with; entries about others are accepted.
        """
        if not len(chunk.batches):
            return
        batches = chunk.batches
        starts = batches.starts + chunk.position
        last_offsets = batches.next_offsets - 1
        self._check_offsets(starts, chunk.end_position, last_offsets, valid, batches)
        self._check_times(last_offsets, valid, batches)

    def skip(self, position: int, end: int) -> None:
        """Accept the offset entries that point at bytes of the log that are not a batch.

        Args:
            position: The position of the first byte.
            end: The position after the last byte.
        """
        self._offsets.is_right[self._offsets.between(position, end)] = True

    def faults(self, *, is_complete: bool) -> Iterator[IndexFault]:
        """Yield what is wrong.

        Args:
            is_complete: Whether the whole log was added; if not, times are not judged.
        """
        if not is_complete:
            self._times.is_right[:] = True
        yield from self._offsets.faults(INDEX, "offset", OFFSET_ENTRY.itemsize)
        time_faults = list(self._times.faults(TIME_INDEX, "time", TIME_ENTRY.itemsize))
        yield from time_faults
        has_end = self._is_klogs and self._has_last_entry and is_complete
        if has_end and not time_faults and self._last_timestamp_ms != self._max_timestamp_ms:
            yield IndexFault(
                TIME_INDEX,
                f"the time index ends with timestamp {self._last_timestamp_ms}, and the largest "
                f"of the log is {self._max_timestamp_ms}",
            )

    def _check_offsets(
        self, starts: Longs, end: int, last_offsets: Longs, valid: Mask, batches: v2.Batches
    ) -> None:
        entries = self._offsets.between(int(starts[0]), end)
        positions, offsets = self._offsets.keys[entries], self._offsets.values[entries]
        at = np.searchsorted(starts, positions, "right") - 1
        if self._is_klogs:
            is_right = offsets == last_offsets[at]
        else:
            is_right = (offsets >= batches.min_offsets[at]) & np.isin(offsets, last_offsets)
            is_right |= offsets > last_offsets[-1]  # The append goes on in the next chunk.
        is_right &= starts[at] == positions
        self._offsets.is_right[entries] = is_right | ~valid[at]

    def _check_times(self, last_offsets: Longs, valid: Mask, batches: v2.Batches) -> None:
        batch_ms = batches.headers["max_timestamp"].astype(np.int64)
        batch_ms = np.where(valid, batch_ms, v2.NO_TIMESTAMP)
        max_ms_before = np.maximum.accumulate(np.append(self._max_timestamp_ms, batch_ms))
        self._max_timestamp_ms = int(max_ms_before[-1])
        min_offsets = batches.min_offsets
        entries = self._times.between(int(min_offsets.min()), int(last_offsets.max()) + 1)
        offsets, entry_ms = self._times.keys[entries], self._times.values[entries]
        at = np.minimum(np.searchsorted(last_offsets, offsets, "left"), len(last_offsets) - 1)
        is_right = batch_ms[at] == entry_ms
        if self._is_klogs:
            is_right &= (last_offsets[at] == offsets) & (max_ms_before[at] < entry_ms)
        else:
            is_right &= min_offsets[at] <= offsets
        self._times.is_right[entries] |= is_right


class _CheckedEntries:
    """The entries of one index, sorted by what they are found by, and which were right so far."""

    def __init__(self, keys: Longs, values: Longs) -> None:
        self._order = np.argsort(keys, kind="stable")
        self.keys, self.values = keys[self._order], values[self._order]
        self.is_right = np.zeros(len(keys), np.bool_)
        self._is_ascending = bool((np.diff(keys) > 0).all() and (np.diff(values) > 0).all())

    def between(self, start: int, end: int) -> slice:
        """Return the entries whose keys are in a range."""
        return slice(*np.searchsorted(self.keys, (start, end), "left").tolist())

    def faults(self, kind: str, name: str, entry_bytes: int) -> Iterator[IndexFault]:
        """Yield a fault if any entry is wrong or they do not ascend."""
        wrong = np.sort(self._order[~self.is_right])
        if len(wrong):
            yield IndexFault(
                kind,
                f"{len(wrong):,} of {len(self.is_right):,} entries of the {name} index do not fit "
                f"the log, the first is entry {wrong[0]}",
                int(wrong[0]) * entry_bytes,
            )
        elif not self._is_ascending:
            yield IndexFault(kind, f"the entries of the {name} index do not rise")
