"""A segment made of batches that lie in others: what compaction, merge and import write.

The rule: batches are put as they come, one segment one file, the log before its indexes, as a write
does; nothing is held but what the indexes need of each batch. The entry says the offsets that the
caller gives: where records were taken out, a segment stands for more of them than its file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.log.entries import MOST_PRODUCERS, Entry
from klog.connector.log.paths import SegmentPath
from klog.connector.store.contract import WritableStore
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.counting import LATEST_MS, data_counts, header_times
from klog.logformat.indexing import Appends, appends_of, index_appends, joined
from klog.logformat.offset_index import encode_offset_index
from klog.logformat.restamp import Run
from klog.logformat.time_index import encode_time_index

UNINDEXED_INTERVALS = 16
"""A segment below so many times `index.interval.bytes` has no index files: it is read whole."""


@dataclass(frozen=True, slots=True)
class Span:
    """What a segment stands for: its offsets in the log, and the least time of what it was made of.

    `origin` is one of `entries.ORIGINS`, and `aborted` as an entry has it: records of these
    transactions are counted all the same, for only who wrote them knows which they are.
    """

    base_offset: int
    next_offset: int
    min_timestamp_ms: int
    origin: str
    aborted: Sequence[int] = ()


class SegmentWriter:
    """One segment in the making."""

    def __init__(
        self, store: WritableStore, root: str, file: SegmentPath, interval_bytes: int
    ) -> None:
        """Take the place of its log; `interval_bytes` is `index.interval.bytes`."""
        self._store, self._file, self._interval_bytes = store, file, interval_bytes
        self._path = f"{root}/{file}"
        self._appends: list[Appends] = []
        self._crc32c = self._records = 0
        self._producers: set[int] = set()
        self._codec = self._leader_epoch = -1
        self._least_ms = LATEST_MS

    def write(self, runs: Iterator[Run], span: Span) -> Entry | None:
        """Put the segment and its indexes, and give its entry; None, and no file, for no batch."""
        first = next(runs, None)
        if first is None:
            return None
        self._store.put(self._path, self._taken(first, runs))
        appends = joined(self._appends)
        size_bytes, index, times = int(appends.size_bytes.sum()), b"", b""
        if size_bytes >= self._interval_bytes * UNINDEXED_INTERVALS:
            offset_index, time_index = index_appends(
                appends, self._file.first_offset, self._interval_bytes
            )
            index, times = encode_offset_index(offset_index), encode_time_index(time_index)
            stem = self._path.removesuffix(".log")
            self._store.put(f"{stem}.index", [index])
            self._store.put(f"{stem}.timeindex", [times])
        return {
            "partition": self._file.partition,
            "file": str(self._file),
            "base_offset": span.base_offset,
            "next_offset": span.next_offset,
            "offset_shift": 0,
            "size_bytes": size_bytes,
            "index_bytes": len(index),
            "time_index_bytes": len(times),
            "crc32c": self._crc32c,
            "record_count": self._records,
            "batch_count": len(appends),
            "min_timestamp_ms": min(span.min_timestamp_ms, max(self._least_ms, v2.NO_TIMESTAMP)),
            "max_timestamp_ms": int(appends.max_timestamps.max()),
            "leader_epoch": self._leader_epoch,
            "codec": NAMES[self._codec],
            "producer_ids": sorted(self._producers)[:MOST_PRODUCERS],
            "origin": span.origin,
            "torn_bytes": 0,
            "aborted": list(span.aborted),
        }

    def _taken(self, first: Run, rest: Iterator[Run]) -> Iterator[bytes]:
        self._take(first)
        yield first.data
        for run in rest:
            self._take(run)
            yield run.data

    def _take(self, run: Run) -> None:
        headers = run.batches.headers
        self._appends.append(appends_of(run.batches))
        self._crc32c = google_crc32c.extend(self._crc32c, np.frombuffer(run.data, np.uint8))
        self._records += int(data_counts(run.data, run.batches).sum())
        # Of a batch whose first record goes, its next one may be older.
        self._least_ms = min(self._least_ms, header_times(run.batches)[0])
        ids = np.unique(headers["producer_id"])
        self._producers.update(ids[ids >= 0].tolist())
        self._codec = int(headers["attributes"][-1]) & v2.CODEC_MASK
        self._leader_epoch = max(self._leader_epoch, int(headers["leader_epoch"].max()))
