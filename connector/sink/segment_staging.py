"""The segments of one partition that one task stages: batches in, files on the store out.

The rule: a segment rolls where a broker's would (docs/format.md, 9); each batch counts as one
append. A segment is put when it is closed: first its log, then its indexes, made by Kafka's rules.
A small segment has no indexes, because readers read all of it. The log comes first because vacuum
finds the files of a segment by its log: if the writer is killed between the puts, vacuum still
finds all that was put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import google_crc32c
import numpy as np

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath, index_file_path
from klog.connector.sink.batch_spool import BatchSpool, SpooledBatch
from klog.connector.sink.write_plan import TaskAttempt, TopicPlan
from klog.connector.sink.write_settings import WriteSettings
from klog.connector.store.writable_store import WritableStore
from klog.logformat.array_types import Longs
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.indexes.index_building import Appends, build_indexes
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index
from klog.logformat.segments.segment_rolling import OpenSegment


@dataclass(slots=True)
class _BufferedSegment:
    """A segment that is not closed yet; the lists have an item for each batch."""

    rolling: OpenSegment
    batches: list[SpooledBatch] = field(default_factory=list)
    first_offsets: list[int] = field(default_factory=list)
    last_offsets: list[int] = field(default_factory=list)
    max_timestamps: list[int] = field(default_factory=list)
    min_timestamp_ms: int = (1 << 63) - 1
    crc32c: int = 0

    def appends(self) -> Appends:
        """Return the batches as the indexes see them."""
        last_offsets = np.array(self.last_offsets, np.int64)
        return Appends(
            np.array([batch.size_bytes for batch in self.batches], np.int64),
            np.array(self.first_offsets, np.int64),
            last_offsets,
            np.array(self.max_timestamps, np.int64),
            last_offsets,
        )


class SegmentStager:
    """Stages the segments of one partition."""

    def __init__(
        self,
        plan: TopicPlan,
        task: TaskAttempt,
        partition: int,
        root: str,
        store: WritableStore,
        spool: BatchSpool,
    ) -> None:
        """Start at the partition's log end offset in the plan.

        Args:
            plan: The plan for the topic.
            task: The attempt that writes.
            partition: The partition.
            root: The path of the root, as the store spells it.
            store: Where segments go.
            spool: Where batches wait until their segment is closed.
        """
        self._plan, self._task, self._partition = plan, task, partition
        self._root, self._store, self._spool = root, store, spool
        self._attributes: BatchAttributes = plan.batch_attributes(task, partition)
        self._first_offset = self._next_offset = plan.log_ends[partition]
        self._segments: list[SegmentEntry] = []
        self._open: _BufferedSegment | None = None

    @property
    def next_offset(self) -> int:
        """Return the offset of the next record."""
        return self._next_offset

    @property
    def segments(self) -> Sequence[SegmentEntry]:
        """Return the entries of the segments on the store, in order."""
        return self._segments

    def next_attributes(self) -> BatchAttributes:
        """Return the attributes of the next batch, which continues the task's sequence."""
        sequence = increment_sequence(0, self._next_offset - self._first_offset)
        return replace(self._attributes, base_sequence=sequence)

    def add(self, batch: bytes, timestamps: Longs) -> None:
        """Append an encoded batch.

        Args:
            batch: The batch of the next records.
            timestamps: The timestamps of its records, in ms.
        """
        first_offset = self._next_offset
        last_offset = first_offset + len(timestamps) - 1
        min_ms, max_ms = int(timestamps.min()), int(timestamps.max())
        if self._attributes.append_time_ms is not None:
            min_ms = max_ms = self._attributes.append_time_ms
        limits, now_ms = self._plan.settings.limits, self._task.now_ms
        if self._open is not None and self._open.rolling.should_roll(
            len(batch), last_offset, max_ms, limits, now_ms
        ):
            self.close()
        if self._open is None:
            self._open = _BufferedSegment(OpenSegment(first_offset, first_offset, now_ms))
        segment = self._open
        segment.rolling.append(len(batch), last_offset, max_ms, limits)
        segment.batches.append(self._spool.add(batch))
        segment.first_offsets.append(first_offset)
        segment.last_offsets.append(last_offset)
        segment.max_timestamps.append(max_ms)
        segment.min_timestamp_ms = min(segment.min_timestamp_ms, min_ms)
        segment.crc32c = google_crc32c.extend(segment.crc32c, batch)
        self._next_offset = last_offset + 1

    def close(self) -> None:
        """Put the open segment on the store, if there is one."""
        if self._open is None:
            return
        segment, self._open = self._open, None
        base_offset = segment.rolling.base_offset
        file = SegmentPath(
            self._plan.topic,
            self._partition,
            base_offset,
            self._plan.base_version,
            self._task.attempt_id,
        )
        path = f"{self._root}/{file}"
        index, time_index = _encode_indexes(segment, self._plan.settings)
        self._store.put(path, self._spool.take(segment.batches))
        if segment.rolling.size_bytes >= self._plan.settings.min_indexed_bytes:
            self._store.put(index_file_path(path, "index"), [index])
            self._store.put(index_file_path(path, "timeindex"), [time_index])
        self._segments.append(
            build_segment_entry(
                partition=self._partition,
                file=str(file),
                base_offset=base_offset,
                next_offset=segment.rolling.end_offset,
                size_bytes=segment.rolling.size_bytes,
                index_bytes=len(index),
                time_index_bytes=len(time_index),
                crc32c=segment.crc32c,
                record_count=segment.rolling.end_offset - base_offset,
                batch_count=len(segment.batches),
                min_timestamp_ms=segment.min_timestamp_ms,
                max_timestamp_ms=segment.rolling.largest_timestamp_ms,
                leader_epoch=self._attributes.leader_epoch,
                codec=CODEC_NAMES[self._attributes.codec],
                producer_ids=[self._attributes.producer_id],
                origin="append",
            )
        )


def _encode_indexes(segment: _BufferedSegment, settings: WriteSettings) -> tuple[bytes, bytes]:
    """Return the offset index and the time index of a segment; both are empty if it is small."""
    if segment.rolling.size_bytes < settings.min_indexed_bytes:
        return b"", b""
    index, time_index = build_indexes(
        segment.appends(), segment.rolling.base_offset, settings.limits.index_interval_bytes
    )
    return encode_offset_index(index), encode_time_index(time_index)
