"""The offset and time index that recovery makes of a segment's batches (format notes 4.3, 4.4).

A batch that begins more than the interval behind the last one that has an entry gets one: its last
offset and its position, and with it the largest timestamp so far and the last offset of the
earliest batch that carries it, if that timestamp is larger than the entry's before. The time index
ends with the largest timestamp of all. (Kafka's `LogSegment.recover`.)
"""

from __future__ import annotations

import struct

import numpy as np

from klog.logformat.index import Longs

INDEX_INTERVAL_BYTES = 4096
_NO_TIMESTAMP = -1
_ENTRY = struct.Struct(">ii").pack
_TIME_ENTRY = struct.Struct(">qi").pack


class SegmentIndexes:
    """Index one segment, batch after batch; `finish` gives the two files."""

    def __init__(self, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES) -> None:
        """Begin an empty segment at `base_offset`."""
        self.largest_timestamp_ms = _NO_TIMESTAMP
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._last_indexed = 0
        self._largest_at = base_offset
        self._entries: list[bytes] = []
        self._times: list[bytes] = []
        self._last_time_ms = _NO_TIMESTAMP

    def add(self, positions: Longs, last_offsets: Longs, max_timestamps: Longs) -> None:
        """Take the next batches: positions in the segment, last offsets, largest timestamps."""
        done = 0
        while True:
            found = np.searchsorted(positions, self._last_indexed + self._interval_bytes, "right")
            entry = max(int(found), done)
            until = min(entry + 1, len(positions))
            self._follow(last_offsets[done:until], max_timestamps[done:until])
            if entry >= len(positions):
                return
            self._last_indexed = int(positions[entry])
            relative = int(last_offsets[entry]) - self._base_offset
            self._entries.append(_ENTRY(relative, self._last_indexed))
            self._mark_time()
            done = until

    def finish(self) -> tuple[bytes, bytes]:
        """Give `.index` and `.timeindex`, trimmed."""
        self._mark_time()
        return b"".join(self._entries), b"".join(self._times)

    def _follow(self, last_offsets: Longs, max_timestamps: Longs) -> None:
        if not len(max_timestamps):
            return
        largest = int(np.argmax(max_timestamps))
        if int(max_timestamps[largest]) > self.largest_timestamp_ms:
            self.largest_timestamp_ms = int(max_timestamps[largest])
            self._largest_at = int(last_offsets[largest])

    def _mark_time(self) -> None:
        if self.largest_timestamp_ms > self._last_time_ms:
            self._last_time_ms = self.largest_timestamp_ms
            relative = self._largest_at - self._base_offset
            self._times.append(_TIME_ENTRY(self._last_time_ms, relative))
