"""The segments of one partition that one task writes: batches in, files on the store and entries.

The rule: a segment rolls where a broker's would (docs/format.md, 9), each batch being an append.
When it is whole its log is put, and then its indexes, made by Kafka's rules; a small one has none,
for it is read whole. The log comes first because vacuum finds a segment's files by its log: killed
between the puts, a writer leaves nothing that vacuum would not find. Readers meet none of them
before the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import google_crc32c
import numpy as np

from klog.connector.log import entries
from klog.connector.log.paths import SegmentPath
from klog.connector.sink.plan import WritePlan
from klog.connector.sink.settings import Settings
from klog.connector.sink.spool import Kept, Spool
from klog.connector.store.contract import WritableStore
from klog.logformat.codecs import NAMES
from klog.logformat.form import Form
from klog.logformat.index import Longs
from klog.logformat.indexing import Appends, index_appends
from klog.logformat.offset_index import encode_offset_index
from klog.logformat.rolling import OpenSegment
from klog.logformat.time_index import encode_time_index


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt at one task: `attempt` is 16 hex digits that no other has (`attempt_id`).

    `now_ms` is the time of staging, the same for all rows of the task; `name` is for errors, where
    there is more than one task.
    """

    index: int
    attempt: str
    now_ms: int
    name: str = ""


@dataclass(slots=True)
class _Whole:
    """What is known of a segment in the making; lists have an item a batch."""

    rolling: OpenSegment
    kept: list[Kept] = field(default_factory=list)
    first_offsets: list[int] = field(default_factory=list)
    last_offsets: list[int] = field(default_factory=list)
    max_timestamps: list[int] = field(default_factory=list)
    min_timestamp_ms: int = (1 << 63) - 1
    crc32c: int = 0

    def appends(self) -> Appends:
        """Give the batches as the indexes go by them."""
        lasts = np.array(self.last_offsets, np.int64)
        return Appends(
            np.array([kept.size_bytes for kept in self.kept], np.int64),
            np.array(self.first_offsets, np.int64),
            lasts,
            np.array(self.max_timestamps, np.int64),
            lasts,
        )


class Segments:
    """A partition's segments in the making; `done` are the entries of those on the store."""

    def __init__(
        self, plan: WritePlan, task: Task, partition: int, store: WritableStore, spool: Spool
    ) -> None:
        """Begin at the partition's end as the plan has it."""
        self._plan, self._task, self._partition = plan, task, partition
        self._store, self._spool = store, spool
        self.form: Form = plan.form(task.index, partition, task.now_ms)
        self.first_offset = self.next_offset = plan.log_ends[partition]
        self.done: list[entries.Entry] = []
        self._open: _Whole | None = None

    def add(self, batch: bytes, timestamps: Longs) -> None:
        """Append a batch of the next records; `timestamps` are theirs."""
        first, last = self.next_offset, self.next_offset + len(timestamps) - 1
        lowest, highest = int(timestamps.min()), int(timestamps.max())
        if self.form.append_time_ms is not None:
            lowest = highest = self.form.append_time_ms
        limits, now_ms = self._plan.settings.limits, self._task.now_ms
        if self._open is not None and self._open.rolling.must_roll(
            len(batch), last, highest, limits, now_ms
        ):
            self.close()
        if self._open is None:
            self._open = _Whole(OpenSegment(first, first, now_ms))
        one = self._open
        one.rolling.take(len(batch), last, highest, limits)
        one.kept.append(self._spool.add(batch))
        one.first_offsets.append(first)
        one.last_offsets.append(last)
        one.max_timestamps.append(highest)
        one.min_timestamp_ms = min(one.min_timestamp_ms, lowest)
        one.crc32c = google_crc32c.extend(one.crc32c, batch)
        self.next_offset = last + 1

    def close(self) -> None:
        """Put the segment in the making on the store, if there is one."""
        if self._open is None:
            return
        one, self._open = self._open, None
        base = one.rolling.base_offset
        file = SegmentPath(
            self._plan.topic, self._partition, base, self._plan.birth, self._task.attempt
        )
        path = f"{self._plan.root}/{file}"
        index, time_index = _indexes(one, self._plan.settings)
        self._store.put(path, self._spool.take(one.kept))
        if one.rolling.size_bytes >= self._plan.settings.indexed_bytes:
            stem = path.removesuffix(".log")
            self._store.put(f"{stem}.index", [index])
            self._store.put(f"{stem}.timeindex", [time_index])
        self.done.append(
            {
                "partition": self._partition,
                "file": str(file),
                "base_offset": base,
                "next_offset": one.rolling.end_offset,
                "offset_shift": 0,
                "size_bytes": one.rolling.size_bytes,
                "index_bytes": len(index),
                "time_index_bytes": len(time_index),
                "crc32c": one.crc32c,
                "record_count": one.rolling.end_offset - base,
                "batch_count": len(one.kept),
                "min_timestamp_ms": one.min_timestamp_ms,
                "max_timestamp_ms": one.rolling.largest_timestamp_ms,
                "leader_epoch": self.form.leader_epoch,
                "codec": NAMES[self.form.codec],
                "producer_ids": [self.form.producer_id],
                "origin": "append",
            }
        )


def _indexes(one: _Whole, settings: Settings) -> tuple[bytes, bytes]:
    """Encode the indexes of a whole segment; both are empty if it is small."""
    if one.rolling.size_bytes < settings.indexed_bytes:
        return b"", b""
    index, time_index = index_appends(
        one.appends(), one.rolling.base_offset, settings.limits.index_interval_bytes
    )
    return encode_offset_index(index), encode_time_index(time_index)
